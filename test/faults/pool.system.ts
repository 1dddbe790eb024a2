import { QUOTE_STATEMENTS_AT_A_TIME } from '../../db/quotes/store';
import { useApi } from '../support/api';
import { openDatabaseAt } from '../support/database';
import { until } from '../../testbed/until';
import { addMerchant } from '../support/merchants';

const TIMEOUT_MS = 4_000;

const environment = { DATABASE_POOL_SIZE: '4', DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) };
const api = useApi({ environment });
beforeAll(() => addMerchant(api.database, 'M100001'));

/** Sessions of this database by application and state. */
async function sessions(application: string, state: string): Promise<number> {
  const rows = await api.database.sql`
    select 1 from pg_stat_activity where datname = current_database() and application_name = ${application}
    and state = ${state}`;
  return rows.count;
}

const sessionsAre = (count: number, application: string, state: string) =>
  until(async () => (await sessions(application, state)) === count, `${count} sessions`, 10_000);

test('a process that is ready has every connection that a quote may need', async () => {
  await until(async () => (await api.readyStatus()) === 200, 'ready');
  await sessionsAre(QUOTE_STATEMENTS_AT_A_TIME, 'pfqs api quotes', 'idle');
  await sessionsAre(2, 'pfqs api', 'idle');
});

test('pools that slow statements hold: 500 within the deadline, then on', async () => {
  const { sql } = api.database;
  await sql.unsafe(`
    create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
    create trigger dawdle before insert on quotes for each row execute function dawdle()`);
  const started = performance.now();
  const answers = await sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table merchants in access exclusive mode`;
    const inserts = Array.from({ length: 20 }, () => api.quote());
    // Merchants that are not in memory: two wait in Postgres, the others for a connection.
    const lookUps = Array.from({ length: 10 }, (_, at) => api.quote({ merchant_id: `M99999${at}` }));
    await sessionsAre(QUOTE_STATEMENTS_AT_A_TIME, 'pfqs api quotes', 'active');
    await sessionsAre(2, 'pfqs api', 'active');
    expect(await api.readyStatus()).toBe(503);
    return Promise.all([...inserts, ...lookUps]);
  });
  // Nobody waited for the minute that the inserts would have taken. (Slack: a busy machine.)
  expect(performance.now() - started).toBeLessThan(5 * TIMEOUT_MS);
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL_SERVER_ERROR' } } });
    expect(answer.headers['x-request-id']).toMatch(/^rq_/);
  }

  // The server ends the statements itself (statement_timeout): nothing sleeps on for a caller that has gone.
  await sessionsAre(0, 'pfqs api quotes', 'active');
  await sessionsAre(0, 'pfqs api', 'active');
  await sql`drop trigger dawdle on quotes`;
  for (let calls = 0; calls < 10; calls += 1)
    expect(await api.quote({ merchant_id: 'M100001' })).toMatchObject({ status: 200 });
  expect(await api.readyStatus()).toBe(200);
});

test('a transaction left idle is ended by the server, its locks with it, and not silently', async () => {
  const { sql } = api.database;
  const fatal = async () => {
    const [row] =
      await sql`select sessions_fatal::int as n from pg_stat_database where datname = current_database()`;
    return Number(row?.['n']);
  };
  const before = await fatal();
  // As in the API, but with more patience for silence than the server has: by default its own socket gives up first.
  const leaking = openDatabaseAt(api.databaseUrl, { applicationName: 'leak', statementTimeoutMs: 20_000 });
  const leak = leaking.db.transaction(async (tx) => {
    await tx.execute(`select 1 from merchants where merchant_id = 'M100001' for update`);
    await new Promise(() => undefined);
  });
  const told = leak.catch(String);
  await sessionsAre(1, 'leak', 'idle in transaction');
  const started = performance.now();
  await sql`update merchants set trading_name = 'Waited' where merchant_id = 'M100001'`;
  const waited = performance.now() - started;
  expect(waited).toBeGreaterThan(5_000);
  expect(waited).toBeLessThan(14_000);
  // Whoever left it is told, which is a logged fault and a 500; and the server keeps count.
  expect(await told).toContain('CONNECTION_CLOSED');
  await until(async () => (await fatal()) > before, 'it is counted');
  expect(await fatal()).toBe(before + 1);
  // The pool replaces the connection.
  expect(await leaking.sql`select 1 as one`).toEqual([{ one: 1 }]);
  await leaking.close();
});
