import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import postgres from 'postgres';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { generateWebhookSecret } from '../../db/endpoints/webhook-secret';
import { freePort } from '../../dev/free-port';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { startTemporalPostgres, type RunningTemporalPostgres } from '../../dev/temporal-postgres';
import { DATABASES } from '../../dev/temporal-postgres/schema';
import { endChild, nextMessage, startChild } from './children';
import { trackStatements } from './statements';
import { addPartners } from './partners';
import { startReceivers, type Receivers } from './receivers';
import { asRole, migrateWithLogins } from '../../test/support/roles';

/** Everything that takes part. */
export interface Stage {
  readonly temporal: RunningTemporalPostgres;
  /** Superuser of Temporal's own database. */
  readonly temporalSql: postgres.Sql;
  /** Ours. */
  readonly postgres: RunningPostgres;
  readonly database: Database;
  readonly receivers: Receivers;
  /** The floors' process. */
  readonly bare: ChildProcess;
  /** Ours, bin/worker.ts. */
  readonly worker: ChildProcess;
  /** Sixteen, with an endpoint each. */
  readonly partners: readonly string[];
  /** One more, whose endpoint may hang. */
  readonly slow: { readonly partnerId: string; readonly host: string };
  close(): Promise<void>;
}

export interface StageOptions {
  readonly directory: string;
  readonly nodeArgs: readonly string[];
  readonly say: (line: string) => void;
}

const ENDPOINTS = 16;
const NAMESPACE = 'default';
const SETTINGS = {
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  shared_preload_libraries: 'pg_stat_statements',
} as const;

export async function setStage({ directory, nodeArgs, say }: StageOptions): Promise<Stage> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    const ours = await startPostgres({
      dataDir: join(directory, 'postgres'),
      port: await freePort(),
      password: 'bench',
      settings: SETTINGS,
    });
    closers.push(() => ours.stop());
    const temporal = await startTemporalPostgres({
      toolsDir: process.env['TOOLS_DIR'],
      directory: join(directory, 'temporal'),
      password: 'bench',
      namespace: NAMESPACE,
      postgresSettings: SETTINGS,
      onProgress: say,
    });
    closers.push(() => temporal.stop());
    await migrateWithLogins(ours.url);
    const database = connectDatabase({
      url: ours.url,
      poolSize: 10,
      applicationName: 'pfqs bench',
      statementTimeoutMs: 20_000,
    });
    closers.push(() => database.close());
    const temporalUrl = new URL(temporal.postgres.url);
    temporalUrl.pathname = `/${DATABASES.history}`;
    const temporalSql = postgres(temporalUrl.href, { max: 1, onnotice: () => undefined });
    closers.push(() => temporalSql.end());
    for (const sql of [database.sql, temporalSql]) {
      await sql`create extension pg_stat_statements`;
      await trackStatements(sql, 'none');
    }

    const hosts = Array.from({ length: ENDPOINTS }, (_, at) => `partner-${at + 1}.example`);
    const slowHost = 'slow.example';
    const receivers = await startReceivers(directory, [...hosts, slowHost]);
    closers.push(() => receivers.close());
    const keys = `bench:${randomBytes(32).toString('base64')}`;
    const partners = await addPartners(database, parseKeyRing(keys), receivers.urls);

    const env = {
      ...receivers.environment,
      WEBHOOK_KEYS: keys,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: NAMESPACE,
    };
    const bare = startChild('bench/delivery/bare-worker.ts', {
      args: [generateWebhookSecret(), ...receivers.urls.slice(0, ENDPOINTS)],
      env,
      nodeArgs,
      logFile: join(directory, 'bare.log'),
    });
    closers.push(() => endChild(bare));
    await nextMessage(bare);
    const port = await freePort();
    const worker = startChild('bin/worker.ts', {
      // How the watchdog finds it.
      args: [`--files=${directory}`],
      env: { ...env, DATABASE_URL: asRole(ours.url, 'worker'), WORKER_PORT: String(port) },
      nodeArgs,
      logFile: join(directory, 'worker.log'),
    });
    closers.push(() => endChild(worker));
    await ready(port);
    const [slowId = ''] = partners.slice(ENDPOINTS);
    const slow = { partnerId: slowId, host: slowHost };
    return {
      temporal,
      temporalSql,
      postgres: ours,
      database,
      receivers,
      bare,
      worker,
      partners: partners.slice(0, ENDPOINTS),
      slow,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function ready(port: number): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the worker is not ready after a minute');
}
