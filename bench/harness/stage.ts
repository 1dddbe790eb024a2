import { join } from 'node:path';
import postgres from 'postgres';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { freePort } from '../../dev/ports';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { newKeyRingText } from '../../testbed/notifications';
import { withTemporal } from '../../testbed/own-temporal';
import { openProductionTemporal } from '../../testbed/production-temporal';
import { ensureNamespace } from '../../runtime/temporal/namespace';
import { asRole, migrateWithLogins } from '../../testbed/roles';
import type { Bench } from './bench';
import { answers, startChild } from './children';
import { startReceivers } from './receivers';
import { say } from '../../testbed/say';
import { addPartners } from './stored';

const NAMESPACE = 'default';
export const SETTINGS = { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: 200 } as const;

/** A Postgres with our schema, which ends with the bench. */
export async function openPostgres(
  bench: Bench,
  settings: Readonly<Record<string, string | number>> = SETTINGS,
): Promise<RunningPostgres> {
  const running = await startPostgres({
    dataDir: join(bench.directory, 'postgres'),
    port: await freePort(),
    password: 'bench',
    settings,
  });
  bench.onEnd(() => running.stop());
  await migrateWithLogins(running.url);
  return running;
}

export function openDatabase(
  bench: Bench,
  url: string,
  more: Partial<Parameters<typeof connectDatabase>[0]> = {},
): Database {
  const defaults = { poolSize: 10, applicationName: 'pfqs bench', statementTimeoutMs: 0 };
  const database = connectDatabase({ url, ...defaults, ...more });
  bench.onEnd(() => database.close());
  return database;
}

/** What deliveries need but for a worker: Temporal on a Postgres of its own, our Postgres, and partners with endpoints. */
export type Ground = Awaited<ReturnType<typeof openGround>>;
/** The same with a worker. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

interface GroundOptions {
  /** One that has been opened already. */
  readonly postgres?: RunningPostgres;
  /** Of both Postgres. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Shards of its history, and sessions of its database. */
  readonly temporal?: { readonly shards: number; readonly connections: number };
}

interface StageOptions extends Pick<GroundOptions, 'postgres'> {
  /** Number of partners whose endpoints can misbehave. */
  readonly hostile?: number;
  readonly countsStatements?: boolean;
}

const ENDPOINTS = 16;

const names = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}-${at + 1}`);

/** @param namesOfGroups endpoints, each group in a process of its own */
export async function openGround(
  bench: Bench,
  namesOfGroups: readonly (readonly string[])[],
  options: GroundOptions = {},
) {
  say('starting Temporal on Postgres, our Postgres and endpoints');
  const { settings = SETTINGS } = options;
  const ours = options.postgres ?? (await openPostgres(bench, settings));
  const temporal = await startTemporal(bench, { shards: 4, connections: 20, settings, ...options.temporal });
  const temporalUrl = new URL(temporal.postgres.url);
  temporalUrl.pathname = '/temporal';
  const temporalSql = postgres(temporalUrl.href, { max: 1, onnotice: () => undefined });
  bench.onEnd(() => temporalSql.end());

  const { groups, environment: reachable } = await startReceivers(bench, namesOfGroups);
  const keys = newKeyRingText();
  const database = openDatabase(bench, ours.url);
  const populated = await Promise.all(
    groups.map(async (receivers) => {
      const partners = await addPartners(database, parseKeyRing(keys), receivers.urls);
      return { receivers, partners };
    }),
  );
  return {
    temporal,
    /** Superuser of Temporal's own database. */
    temporalSql,
    postgres: ours,
    database,
    groups: populated,
    /** Settings with which a worker reaches Temporal and the endpoints. */
    environment: {
      ...reachable,
      WEBHOOK_KEYS: keys,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: NAMESPACE,
    },
  };
}

/** The server that is deployed, without TLS. */
async function startTemporal(
  bench: Bench,
  measured: NonNullable<Parameters<typeof openProductionTemporal>[0]>,
) {
  const server = await openProductionTemporal(measured);
  bench.onEnd(() => server.close());
  const { pid } = server.start();
  await server.ready();
  const { address, store } = server;
  await withTemporal({ address }, ({ connection }) =>
    ensureNamespace(connection, { namespace: NAMESPACE, keepDays: 1 }),
  );
  return { address, namespace: NAMESPACE, pid, postgres: { url: store.url, pid: store.pid() } };
}

/** Starts bin/worker.ts. @returns it once it is ready, and the port of its metrics */
export async function startWorker(bench: Bench, ground: Ground) {
  const port = await freePort();
  const url = asRole(ground.postgres.url, 'worker');
  const worker = startChild(bench, 'bin/worker.ts', {
    // The watchdog finds it by its folder.
    args: [`--files=${bench.directory}`],
    env: { ...ground.environment, DATABASE_URL: url, WORKER_PORT: String(port) },
    nodeArgs: ['--require', join(__dirname, '../../worker/workflow-thread.cjs')],
  });
  await answers(`http://127.0.0.1:${port}/ready`);
  return { worker, port };
}

export async function openStage(bench: Bench, options: StageOptions = {}) {
  const { hostile = 0, countsStatements = false } = options;
  const ground = await openGround(bench, [names('partner', ENDPOINTS), names('hostile', hostile)], {
    ...options,
    settings: { ...SETTINGS, ...(countsStatements && { shared_preload_libraries: 'pg_stat_statements' }) },
  });
  const [quiet, misbehaving] = ground.groups;
  if (quiet === undefined || misbehaving === undefined) throw new Error('there are two groups');
  const { worker, port } = await startWorker(bench, ground);
  return {
    ...ground,
    ...quiet,
    worker,
    workerPort: port,
    /** More partners, whose endpoints can misbehave, in another process. */
    hostile: misbehaving,
  };
}
