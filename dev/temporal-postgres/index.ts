import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Connection } from '@temporalio/client';
import { ensureNamespace } from '../../runtime/temporal/namespace';
import { freeLowPorts, freePort } from '../ports';
import { startPostgres } from '../postgres';
import { launchServer, stopLeftoversOf, type ServerKind } from '../server';
import { answersAt } from '../temporal';
import { ensureSchema, SERVICES, writeServerConfig, type TemporalSize } from './config';
import { findTemporalServer, type Obtaining } from './executables';

export { DATABASES } from './config';

interface TemporalPostgresOptions extends Obtaining, Partial<TemporalSize> {
  /** Gets the database, the configuration and the log. Created when it is missing. */
  readonly directory: string;
  /** Of its Postgres; must stay the same for a directory. */
  readonly password: string;
  readonly namespace: string;
  /** Of its Postgres, as in postgresql.conf. */
  readonly postgresSettings?: Readonly<Record<string, string | number>>;
}

/** Its state is in Postgres and in order even after SIGKILL. */
const SERVER: ServerKind = {
  name: 'Temporal',
  program: 'server',
  dataFlag: '--root',
  stopBy: [
    ['SIGTERM', 20_000],
    ['SIGKILL', 5_000],
  ],
  killBy: 'SIGKILL',
};

/** Temporal makes its own namespace when it starts. */
const SYSTEM_NAMESPACE = 'temporal-system';
const START_TIMEOUT_MS = 60_000;

/**
 * Starts a real Temporal server on a Postgres of its own, on free ports of 127.0.0.1: for measuring, and for rehearsing
 * production, tuned as docs/operations/production.md tells ("Temporal"). Each is in a process group of its own and outlives a killed parent; the
 * next start on the same directory stops it first.
 * @throws StackFailure when it cannot run here; the message says why.
 */
export async function startTemporalPostgres(options: TemporalPostgresOptions) {
  const { namespace, password, onProgress, shards = 4, connections = 20 } = options;
  const directory = resolve(options.directory);
  const folder = join(directory, 'server');
  await mkdir(directory, { recursive: true });
  const executables = await findTemporalServer(options);
  await stopLeftoversOf(SERVER, folder, onProgress);
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await freePort(),
    password,
    settings: { shared_buffers: '256MB', max_wal_size: '4GB', ...options.postgresSettings },
    onProgress,
  });
  let server: Awaited<ReturnType<typeof startServer>> | undefined;
  /** First the server, then its Postgres. Safe to call twice. */
  const stop = async () => {
    await server?.stop();
    await postgres.stop();
  };
  try {
    const { url } = postgres;
    await ensureSchema({ postgresUrl: url, sqlTool: executables.sqlTool, onProgress });
    server = await startServer(executables.server, folder, { postgresUrl: url, shards, connections });
    await prepareNamespace(server.address, namespace);
    return { ...server, namespace, postgres, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function prepareNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    await ensureNamespace(connection, { namespace, keepDays: 1 });
  } finally {
    await connection.close();
  }
}

/** Fewer collections: the server's live memory is small next to what it throws away. */
const GOGC = '400';

async function startServer(
  executable: string,
  folder: string,
  config: TemporalSize & { readonly postgresUrl: string },
) {
  // It stores its ports as signed 16-bit numbers.
  const ports = await freeLowPorts(2 * SERVICES.length);
  const args = await writeServerConfig(folder, { ...config, ports });
  // Nothing of ours: TEMPORAL_… would be taken for settings.
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder, TZ: 'UTC', GOGC };
  /** `host:port` of its gRPC service, without TLS. */
  const address = `127.0.0.1:${ports[0]}`;
  const server = await launchServer({
    kind: SERVER,
    spawn: (log) =>
      spawn(executable, args, { detached: true, cwd: folder, env, stdio: ['ignore', log, log] }),
    logFile: `${folder}.log`,
    answers: () => answersAt({ address }, SYSTEM_NAMESPACE),
    timeoutMs: START_TIMEOUT_MS,
  });
  return { ...server, address };
}
