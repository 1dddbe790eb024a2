import { join } from 'node:path';
import postgres from 'postgres';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { freePort } from '../../dev/ports';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { DATABASES, startTemporalPostgres } from '../../dev/temporal-postgres';
import { newKeyRingText } from '../../test/support/notifications';
import { asRole, migrateWithLogins } from '../../test/support/roles';
import type { Bench } from './bench';
import { answers, startChild } from './children';
import { startReceivers } from './receivers';
import { say } from './report';
import { addPartners } from './stored';

const NAMESPACE = 'default';
const SETTINGS = { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: 200 } as const;

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

/** Everything that takes part in a delivery: Temporal on a Postgres of its own, our Postgres, a worker, and partners with endpoints. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

export interface StageOptions {
  readonly nodeArgs?: readonly string[];
  /** Number of partners whose endpoints can misbehave. */
  readonly hostile?: number;
  /** One that has been opened already. */
  readonly postgres?: RunningPostgres;
  /** Both Postgres can count statements. */
  readonly countsStatements?: boolean;
}

const ENDPOINTS = 16;

export async function openStage(bench: Bench, options: StageOptions = {}) {
  const { nodeArgs = [], hostile = 0 } = options;
  say('starting Temporal on Postgres, our Postgres, endpoints and worker');
  const settings = {
    ...SETTINGS,
    ...(options.countsStatements && { shared_preload_libraries: 'pg_stat_statements' }),
  };
  const ours = options.postgres ?? (await openPostgres(bench, settings));
  const temporal = await startTemporalPostgres({
    directory: join(bench.directory, 'temporal'),
    password: 'bench',
    namespace: NAMESPACE,
    postgresSettings: settings,
    onProgress: say,
  });
  bench.onEnd(() => temporal.stop());
  const temporalUrl = new URL(temporal.postgres.url);
  temporalUrl.pathname = `/${DATABASES.history}`;
  const temporalSql = postgres(temporalUrl.href, { max: 1, onnotice: () => undefined });
  bench.onEnd(() => temporalSql.end());

  const hosts = (name: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${name}-${at + 1}.example`);
  const { groups, environment: reachable } = await startReceivers(bench, [
    hosts('partner', ENDPOINTS),
    hosts('hostile', hostile),
  ]);
  const keys = newKeyRingText();
  const database = openDatabase(bench, ours.url);
  const [quiet, misbehaving] = await Promise.all(
    groups.map(async (receivers) => {
      const partners = await addPartners(database, parseKeyRing(keys), receivers.urls);
      return { receivers, partners };
    }),
  );
  if (quiet === undefined || misbehaving === undefined) throw new Error('there are two groups');

  const environment = {
    ...reachable,
    WEBHOOK_KEYS: keys,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: NAMESPACE,
  };
  const workerPort = await freePort();
  const worker = startChild(bench, 'bin/worker.ts', {
    // The watchdog finds it by its folder.
    args: [`--files=${bench.directory}`],
    env: { ...environment, DATABASE_URL: asRole(ours.url, 'worker'), WORKER_PORT: String(workerPort) },
    nodeArgs,
  });
  await answers(`http://127.0.0.1:${workerPort}/ready`);
  return {
    ...quiet,
    temporal,
    /** Superuser of Temporal's own database. */
    temporalSql,
    /** Ours. */
    postgres: ours,
    database,
    /** Ours, bin/worker.ts. */
    worker,
    workerPort,
    /** Settings with which a worker reaches Temporal and the endpoints. */
    environment,
    /** More partners, whose endpoints can misbehave, in another process. */
    hostile: misbehaving,
  };
}
