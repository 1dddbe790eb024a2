import { join, resolve } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/migrate';
import { startPostgres, stopLeftovers, type RunningPostgres } from '../postgres';
import { StackFailure } from '../failure';
import { ensureCertificates } from './certificates';
import { ensurePassword, readStackFile, writeStackFile } from './files';
import { lockInstance } from './instance-lock';
import { checkPorts } from '../ports';
import { createProgress } from './progress';
import type { Stack, StackInfo, StackOptions } from './types';

/** Apart from `postgres`, so that dropping it is a fresh start. */
const DATABASE = 'quotes';

/**
 * Brings the whole stack up on one machine: Postgres, schema, demo data, certificate, services; writes
 * DATA_DIR/stack.json. Data, keys and certificates survive a restart.
 * @throws StackFailure when a person has to do something; whatever was started has been stopped.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { apiPort, internalPort, postgresPort, apiHost = '127.0.0.1', internalHost = '127.0.0.1' } = options;
  const dataDir = resolve(options.dataDir);
  const postgresDir = join(dataDir, 'postgres');
  const urls = { apiUrl: `https://localhost:${apiPort}`, internalUrl: `http://127.0.0.1:${internalPort}` };
  const lock = await lockInstance(dataDir, urls.apiUrl, (line) => options.write(`${line}\n`));
  const progress = createProgress((text) => options.write(text), options.databaseUrl === undefined ? 5 : 4);
  const closers: (() => Promise<void>)[] = [() => lock.release()];
  const stop = createStop(() => lock.markStopping(), closers);
  const note = (text: string) => progress.note(text);
  let server: RunningPostgres | undefined;
  options.killSignal?.addEventListener('abort', () => server?.kill());

  const step = <T>(name: string, task: () => Promise<T>) => {
    options.signal?.throwIfAborted();
    return progress.step(name, task);
  };
  try {
    // Before the ports: a killed run's Postgres holds one of them.
    if (options.databaseUrl === undefined) await stopLeftovers(postgresDir, note);
    await checkPorts([
      { setting: 'API_PORT', host: apiHost, port: apiPort },
      { setting: 'INTERNAL_PORT', host: internalHost, port: internalPort },
      ...(options.databaseUrl === undefined
        ? [{ setting: 'POSTGRES_PORT', host: '127.0.0.1', port: postgresPort }]
        : []),
    ]);
    if (options.databaseUrl === undefined) {
      const password = await ensurePassword(dataDir);
      const { signal } = options;
      const own = await step('Postgres', () =>
        startPostgres({
          dataDir: postgresDir,
          port: postgresPort,
          password,
          onProgress: note,
          ...(signal && { signal }),
        }),
      );
      closers.push(() => own.stop());
      server = own;
    }
    const databaseUrl = options.databaseUrl ?? (await ensureDatabase(server?.url ?? ''));
    await step('Database schema', () => migrateDatabase(databaseUrl));
    const known = await readStackFile(dataDir);
    const demo = await step('Demo partner, keys, merchants and products', () =>
      options.seed(databaseUrl, known),
    );
    const tls = await step('Development certificate', () =>
      ensureCertificates(join(dataDir, 'tls'), new Date()),
    );
    closers.push(await step('API', () => options.startServices({ databaseUrl, tls })));
    options.signal?.throwIfAborted();

    const info: StackInfo = { ...urls, databaseUrl, caFile: tls.caFile, ...demo };
    await writeStackFile(dataDir, info);
    return { info, broken: endOf(server), stop };
  } catch (error) {
    await stop();
    throw options.signal?.aborted ? new StackFailure('Stopped while starting.') : error;
  }
}

/** Everything in reverse order, whatever one of them says. */
function createStop(
  announce: () => Promise<void>,
  closers: readonly (() => Promise<void>)[],
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stopAll = async () => {
    await announce();
    const faults: unknown[] = [];
    for (const close of closers.toReversed())
      await close().catch((error: unknown) => void faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  return () => (stopping ??= stopAll());
}

async function endOf(server: RunningPostgres | undefined): Promise<Error> {
  if (server === undefined) return new Promise<never>(() => undefined);
  await server.exited;
  return new StackFailure(`Postgres has ended by itself. Its log is ${server.logFile}.`);
}

async function ensureDatabase(serverUrl: string): Promise<string> {
  const sql = postgres(serverUrl, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    const found = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found.length === 0) await sql`create database ${sql(DATABASE)}`;
  } finally {
    await sql.end({ timeout: 1 });
  }
  const url = new URL(serverUrl);
  url.pathname = `/${DATABASE}`;
  return url.href;
}
