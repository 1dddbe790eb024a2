import { connectDatabase } from '../../db/connect';
import { startTestApi, type TestApi } from '../support/api';
import { addMerchant } from '../support/merchants';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const TIMEOUT_MS = 1_500;

let api: TestApi;
beforeAll(async () => {
  const environment = { DATABASE_POOL_SIZE: '2', DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) };
  api = await startTestApi({ environment });
  await addMerchant(api.database, 'M100001');
});
afterAll(() => api.close());

/** Statements of the API's pool that the server is working on. */
async function running(): Promise<number> {
  const { sql } = api.database;
  const rows = await sql`
    select 1 from pg_stat_activity where datname = current_database() and application_name = 'pfqs api'
    and state = 'active'`;
  return rows.count;
}

test('a pool that slow statements hold: 500 within the deadline, then on (fault 65)', async () => {
  const { sql } = api.database;
  await sql.unsafe(`
    create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
    create trigger dawdle before insert on quotes for each row execute function dawdle()`);
  const started = performance.now();
  const first = Promise.all(Array.from({ length: 20 }, () => api.quote()));
  await pause(300);
  expect(await running()).toBe(2);
  // Both connections are taken. Readiness waits for one no longer than a second; a merchant that is not in memory is
  // looked for once the server has ended a statement, or given up at the deadline.
  const [lookUp, ready] = await Promise.all([
    api.quote({ merchant_id: 'M999999' }),
    fetch(`http://127.0.0.1:${api.internalPort}/ready`),
  ]);
  expect(performance.now() - started).toBeLessThan(300 + TIMEOUT_MS + 1_500);
  expect([404, 500]).toContain(lookUp.status);
  expect(ready.status).toBe(503);
  for (const answer of await first) {
    expect(answer).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL_SERVER_ERROR' } } });
    expect(answer.headers['x-request-id']).toMatch(/^rq_/);
  }
  expect(performance.now() - started).toBeLessThan(TIMEOUT_MS + 2_500);

  // The server ends the statements itself (statement_timeout): nothing sleeps on for a caller that has gone.
  for (let tries = 0; tries < 40 && (await running()) > 0; tries += 1) await pause(100);
  expect(await running()).toBe(0);
  await sql`drop trigger dawdle on quotes`;
  for (let calls = 0; calls < 10; calls += 1)
    expect(await api.quote({ merchant_id: 'M100001' })).toMatchObject({ status: 200 });
  expect((await fetch(`http://127.0.0.1:${api.internalPort}/ready`)).status).toBe(200);
});

test('a transaction left idle is ended by the server, its locks with it, and not silently (fault 66)', async () => {
  const { sql } = api.database;
  const fatal = async () => {
    const [row] =
      await sql`select sessions_fatal::int as n from pg_stat_database where datname = current_database()`;
    return Number(row?.['n']);
  };
  const before = await fatal();
  // As in the API, but with more patience for silence than the server has: by default its own socket gives up first.
  const leaking = connectDatabase({
    url: api.databaseUrl,
    poolSize: 1,
    applicationName: 'leak',
    statementTimeoutMs: 20_000,
  });
  const leak = leaking.db.transaction(async (tx) => {
    await tx.execute(`select 1 from merchants where merchant_id = 'M100001' for update`);
    await new Promise(() => undefined);
  });
  const told = leak.catch(String);
  await pause(500);
  const started = performance.now();
  await sql`update merchants set trading_name = 'Waited' where merchant_id = 'M100001'`;
  const waited = performance.now() - started;
  expect(waited).toBeGreaterThan(5_000);
  expect(waited).toBeLessThan(14_000);
  // Whoever left it is told, which is a logged fault and a 500; and the server keeps count.
  expect(await told).toContain('CONNECTION_CLOSED');
  for (let tries = 0; tries < 30 && (await fatal()) === before; tries += 1) await pause(100);
  expect(await fatal()).toBe(before + 1);
  // The pool replaces the connection.
  expect(await leaking.sql`select 1 as one`).toEqual([{ one: 1 }]);
  await leaking.close();
});
