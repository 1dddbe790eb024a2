import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import Long from 'long';
import { findTemporal, startTemporal, temporalDataFile, type RunningTemporal } from '../dev/temporal';
import { ensureSearchAttributes } from '../runtime/temporal/namespace';
import { freePort } from '../dev/ports';
import { watchedDirectory } from './watchdog';

/** Runs a task with a client of a server without TLS, connected for as long. */
export async function withTemporal<T>(
  { address, namespace = 'default' }: { readonly address: string; readonly namespace?: string },
  task: (client: Client) => Promise<T>,
): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await task(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}

/** A Temporal dev server that belongs to one test file, to be broken by it. */
export type OwnTemporal = Awaited<ReturnType<typeof ownTemporal>>;

/** Prepares one, without starting it. */
export async function ownTemporal() {
  const executable = await findTemporal();
  const { directory, remove } = await watchedDirectory('own-temporal');
  const dataDir = join(directory, 'temporal');
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const namespace = 'default';
  const connection = Connection.lazy({ address });
  let server: RunningTemporal | undefined;

  const kill = async () => {
    server?.kill();
    await server?.exited;
    server = undefined;
  };
  return {
    address,
    namespace,
    /** Connects at its first call, and again after a loss. */
    client: new Client({ connection, namespace }),
    /** Again, on the same port, and on its file where there is one. */
    async start() {
      // What a killed process has handed to the system is in the file; only a crash of the machine would lose it.
      server = await startTemporal({ executable, dataDir, port, uiPort: null, namespace, sync: false });
    },
    kill,
    /** Creates another namespace, without search attributes. @returns a client of it */
    async register(name: string) {
      await connection.workflowService.registerNamespace({
        namespace: name,
        workflowExecutionRetentionPeriod: { seconds: Long.fromNumber(86_400) },
      });
      return new Client({ connection, namespace: name });
    },
    registerSearchAttributes: (name: string) => ensureSearchAttributes(connection, name),
    /** Deletes its file: the next start knows nothing. Only after `kill`. */
    forget: () => rm(dirname(temporalDataFile(dataDir)), { recursive: true, force: true }),
    async close() {
      await connection.close();
      await kill();
      await remove();
    },
  };
}
