import { parseArgs } from 'node:util';
import type { Sql } from '../db/postgres/connect';
import { seedDemo } from '../dev/seed';
import { DATABASES } from '../dev/temporal-postgres/schema';
import { API_NODE_ARGS } from './node-args';
import { benchDirectory } from './directory';
import { quoteBody } from './quote-body';
import { tableBytes } from './table-bytes';
import { postgresCpuMs, processCpuMs } from './cpu';
import { runRound } from './delivery/rounds';
import { setStage, type Stage } from './delivery/stage';
import { load } from './load';
import { end, startOurs } from './targets';

/**
 * `npm run bench:size`: what a quote and a delivery leave in Postgres and in Temporal's Postgres, in bytes of tables with
 * their indexes and of write-ahead log, and what they cost in CPU. For docs/operations/sizing.md.
 */

const { values: options } = parseArgs({
  options: {
    quotes: { type: 'string', default: '20000' },
    deliveries: { type: 'string', default: '1000' },
    /** Demo merchant to quote for: three products; M100001 has nine. */
    merchant: { type: 'string', default: 'M1000002' },
  },
});

/** Enough that pages begun do not count. */
const WARM_UP = { quotes: 5_000, deliveries: 200 };
const TABLES = ['quotes', 'credit_applications', 'lender_events', 'notifications', 'delivery_attempts'];

/** Bytes so far. */
type Bytes = Readonly<Record<string, number>>;

async function ourBytes(sql: Sql): Promise<Bytes> {
  const bytes: Record<string, number> = { log: await logBytes(sql) };
  const all = await tableBytes(sql);
  for (const table of TABLES) bytes[table] = all.get(table) ?? Number.NaN;
  return bytes;
}

async function temporalBytes({ temporalSql }: Stage): Promise<Bytes> {
  const bytes: Record<string, number> = { log: await logBytes(temporalSql) };
  for (const name of Object.values(DATABASES)) {
    const [row] = await temporalSql`select pg_database_size(${name})::float8 as bytes`;
    bytes[name] = Number(row?.['bytes']);
  }
  return bytes;
}

async function logBytes(sql: Sql): Promise<number> {
  const [row] = await sql`select (pg_current_wal_lsn() - '0/0')::float8 as bytes`;
  return Number(row?.['bytes']);
}

function tell(what: string, before: Bytes, after: Bytes, count: number): void {
  const each = Object.keys(after)
    .map((name) => [name, Math.round(((after[name] ?? 0) - (before[name] ?? 0)) / count)] as const)
    .filter(([, bytes]) => bytes > 0);
  console.log(`${what}, bytes each: ${each.map(([name, bytes]) => `${name} ${bytes}`).join(', ')}`);
}

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('size');
  const stage = await setStage({ directory, nodeArgs: [], say: (line) => console.error(line) });
  const { sql } = stage.database;
  try {
    await quotes(directory, stage);
    await runRound(stage, 'ours', { count: WARM_UP.deliveries, inFlight: 64, restMs: 0 });
    const [ours, temporals] = [await ourBytes(sql), await temporalBytes(stage)];
    const count = Number(options.deliveries);
    const round = await runRound(stage, 'ours', { count, inFlight: 64, restMs: 0 });
    tell('delivery, ours', ours, await ourBytes(sql), count);
    tell('delivery, Temporal', temporals, await temporalBytes(stage), count);
    const cpu = Object.entries(round.cpu).map(([name, ms]) => `${name} ${ms.toFixed(2)}`);
    console.log(`delivery, CPU ms each: ${cpu.join(', ')}; ${round.perSecond.toFixed(0)} per second`);
    const sessions = await sql`
      select application_name as name, count(*)::int as sessions from pg_stat_activity where datname is not null group by 1`;
    console.log(`sessions: ${sessions.map((row) => `${row['name']} ${row['sessions']}`).join(', ')}`);
  } finally {
    await stage.close();
    await remove();
  }
}

async function quotes(directory: string, { database: { sql }, postgres }: Stage): Promise<void> {
  const { partnerId, apiKeys } = await seedDemo(postgres.url, undefined);
  const body = quoteBody(partnerId, options.merchant);
  const common = { databaseUrl: postgres.url, directory, nodeArgs: API_NODE_ARGS, body };
  const api = await startOurs({ ...common, key: apiKeys.test });
  const send = async (requests: number) => {
    const { failures } = await load({ ...api, connections: 64, requests });
    if (failures > 0) throw new Error(`${failures} of ${requests} quotes failed`);
  };
  try {
    await send(WARM_UP.quotes);
    const count = Number(options.quotes);
    const before = await ourBytes(sql);
    const cpu = async () => [processCpuMs(api.child.pid ?? 0), await postgresCpuMs(postgres.pid)];
    const cpuBefore = await cpu();
    await send(count);
    const [server, database] = (await cpu()).map((ms, at) =>
      ((ms - (cpuBefore[at] ?? 0)) / count).toFixed(3),
    );
    tell('quote', before, await ourBytes(sql), count);
    console.log(`quote, CPU ms each: API ${server}, Postgres ${database}`);
  } finally {
    await end(api);
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
