import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../../db/postgres/connect';
import type { Sql } from '../../../../db/postgres/driver/client';
import { createTestDatabase, openDatabaseAt, type TestDatabase } from '../../../support/database';
import { random as randomOf } from '../../../support/random';
import { startTcpProxy, type TcpProxy } from '../../../support/tcp-proxy';

/** Of the faults; what they meet is up to the machine. */
const SEED = 20_261_122;
const POOL_SIZE = 3;
/** Far more than connections, so that each is wanted by the next one the moment it is free or opened again. */
const AT_A_TIME = 24;
const TRANSACTIONS = 300;
/** A connection that is silent for two seconds longer is closed (db/postgres/connect.ts). */
const STATEMENT_TIMEOUT_MS = 500;

let clone: TestDatabase;
let proxy: TcpProxy;
let direct: Database;
let pool: Database;

beforeAll(async () => {
  clone = await createTestDatabase();
  const address = new URL(clone.url);
  proxy = await startTcpProxy({ port: Number(address.port) });
  address.port = String(proxy.port);
  direct = openDatabaseAt(clone.url);
  pool = openDatabaseAt(address.href, {
    poolSize: POOL_SIZE,
    applicationName: 'shared',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  await direct.sql`create table steps (tx text not null, step text not null, xid text not null)`;
});
afterAll(async () => {
  proxy.unfreeze();
  await pool.close();
  await direct.close();
  await proxy.close();
  await clone.close();
});

type Seen = { pid: number; xid: string; marker: string };
type Outcome = 'committed' | 'refused' | 'lost';

/** One transaction that looks three times where it is. */
async function transaction(id: string, random: () => number, findings: string[]): Promise<Outcome> {
  const fails = random() < 0.3;
  const pauses = Array.from({ length: 3 }, () => Math.floor(random() * 20));
  let begun: Seen | undefined;
  const look = async (sql: Pick<Sql, 'unsafe'>, step: string) => {
    await sql.unsafe('insert into steps values ($1, $2, pg_current_xact_id())', [id, step]);
    const [seen] = await sql.unsafe<Seen[]>(
      `select pg_backend_pid() as pid, txid_current_if_assigned()::text as xid, current_setting('pfqs.tx', true) as marker`,
      [],
      { prepare: true },
    );
    begun ??= seen!;
    if (seen!.marker !== id || seen!.pid !== begun.pid || seen!.xid !== begun.xid)
      findings.push(`${id} ${step}: ${JSON.stringify(seen)}, began as ${JSON.stringify(begun)}`);
  };
  try {
    return await pool.sql.begin(async (tx) => {
      const [before] =
        await tx`select current_setting('pfqs.tx', true) as marker, txid_current_if_assigned() as xid`;
      if (before?.['marker'] || before?.['xid']) findings.push(`${id} begins in ${before['marker']}`);
      await tx`select set_config('pfqs.tx', ${id}, true)`;
      await look(tx, 'begin');
      await sleep(pauses[0]);
      await look(tx, 'middle');
      await sleep(pauses[1]);
      await look(tx, 'end');
      // Nothing of the connection is awaited here: one that is lost now is not noticed by a statement.
      await sleep(pauses[2]);
      if (fails) throw new Error('refused');
      return 'committed' as const;
    });
  } catch (error) {
    return (error as Error).message === 'refused' ? 'refused' : 'lost';
  }
}

/** Statements outside of every transaction must not get into one. */
async function plain(findings: string[]): Promise<void> {
  const [seen] =
    await pool.sql`select current_setting('pfqs.tx', true) as marker, txid_current_if_assigned() as xid`;
  if (seen?.['marker'] || seen?.['xid']) findings.push(`a plain statement in ${seen['marker']}`);
}

/** Ends sessions, cuts connections and holds everything back, one after the other, until all is done. */
async function misbehave(random: () => number, done: () => boolean): Promise<void> {
  while (!done()) {
    await sleep(random() * 120);
    const what = random();
    if (what < 0.7) {
      const sessions = await direct.sql<{ pid: number }[]>`
        select pid from pg_stat_activity where datname = current_database() and application_name = 'shared' order by pid`;
      const victim = sessions[Math.floor(random() * sessions.length)];
      if (victim) await direct.sql`select pg_terminate_backend(${victim.pid})`;
    } else if (what < 0.97) {
      proxy.freeze();
      await sleep(random() * 150);
      if (random() < 0.5) proxy.cut();
      proxy.unfreeze();
    } else {
      // Longer than a silent connection is kept.
      proxy.freeze();
      await sleep(STATEMENT_TIMEOUT_MS + 2_500);
      proxy.unfreeze();
    }
  }
}

/** Of what was refused nothing may be there, of what was committed all, each under one number; of what was lost all or nothing. */
async function checkRows(outcomes: ReadonlyMap<string, Outcome>, findings: string[]): Promise<void> {
  const rows = await direct.sql<{ tx: string; steps: number; xids: number }[]>`
    select tx, count(*)::int as steps, count(distinct xid)::int as xids from steps group by tx`;
  const stored = new Map(rows.map((row) => [row.tx, row]));
  for (const [id, outcome] of outcomes) {
    const { steps = 0, xids = 0 } = stored.get(id) ?? {};
    const whole = steps === 3 && xids === 1;
    const fits = { committed: whole, refused: steps === 0, lost: steps === 0 || whole }[outcome];
    if (!fits) findings.push(`${id} was ${outcome}: ${steps} steps in ${xids} transactions are stored`);
  }
}

test('transactions never share a connection while connections are ended, cut off and frozen', async () => {
  const random = randomOf(SEED);
  const findings: string[] = [];
  const outcomes = new Map<string, Outcome>();
  let started = 0;
  let workers = AT_A_TIME;
  const worker = async () => {
    while (started < TRANSACTIONS) {
      const id = `tx-${(started += 1)}`;
      outcomes.set(id, await transaction(id, random, findings));
      await plain(findings).catch(() => undefined);
    }
    workers -= 1;
  };
  await Promise.all([...Array.from({ length: AT_A_TIME }, worker), misbehave(random, () => workers === 0)]);
  // Sessions that were cut off may still be at their commit.
  await pool.sql`select 1`.catch(() => undefined);
  await sleep(500);
  await checkRows(outcomes, findings);
  const counts = { committed: 0, refused: 0, lost: 0 };
  for (const outcome of outcomes.values()) counts[outcome] += 1;
  expect(findings).toEqual([]);
  // The run was one: transactions of every outcome took part.
  expect(Math.min(counts.committed, counts.refused, counts.lost)).toBeGreaterThan(TRANSACTIONS / 50);
}, 120_000);
