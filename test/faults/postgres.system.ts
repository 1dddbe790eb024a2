import postgres from 'postgres';
import { QUOTE_STATEMENTS_AT_A_TIME } from '../../db/quotes/store';
import { type TestApi, useApi } from '../support/api';
import { openDatabaseAt, testServerUrl } from '../support/database';
import { addMerchant } from '../support/merchants';
import { until } from '../../testbed/until';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { migrateWithLogins } from '../../testbed/roles';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const SERVER_FAULT = { status: 500, body: { success: false, error: { code: 'INTERNAL_SERVER_ERROR' } } };

const recovered = (api: TestApi) =>
  until(async () => (await api.quote()).status === 200, 'it has recovered', 10_000);

describe('a server of its own', () => {
  let server: OwnPostgres;
  const api = useApi(async () => {
    server = await startOwnPostgres();
    await migrateWithLogins(server.url);
    return { databaseUrl: server.url, environment: { DATABASE_TIMEOUT_MS: '1500' } };
  });
  beforeAll(() => addMerchant(api.database, 'M100001'));
  afterAll(() => server.close());

  test('a restart: not ready and 500 meanwhile, then on without a restart of ours', async () => {
    expect(await api.readyStatus()).toBe(200);
    expect(await api.quote({ merchant_id: 'M100001' })).toMatchObject({ status: 200 });
    await server.stopImmediately();
    const answer = await api.quote({ merchant_id: 'M100001' });
    expect(answer).toMatchObject(SERVER_FAULT);
    expect(answer.headers['x-request-id']).toMatch(/^rq_/);
    expect(answer.text).not.toMatch(/postgres|ECONN|sql/i);
    expect(await api.readyStatus()).toBe(503);
    await server.start();
    await recovered(api);
    expect(await api.readyStatus()).toBe(200);
    expect(await api.quote({ merchant_id: 'M100001' })).toMatchObject({ status: 200 });
  });

  test('read-only: writes fail at once with 500, and work again afterwards', async () => {
    // A session's own setting outlives a reload, so that this one may always write.
    const admin = postgres(server.url, { max: 1, connection: { default_transaction_read_only: false } });
    const readOnly = async (value: 'on' | 'off') => {
      await admin.unsafe(`alter system set default_transaction_read_only = ${value}`);
      await admin`select pg_reload_conf()`;
      await pause(300);
    };
    await readOnly('on');
    const before = performance.now();
    expect(await api.quote()).toMatchObject(SERVER_FAULT);
    expect(performance.now() - before).toBeLessThan(1_000);
    await readOnly('off');
    await admin.end();
    await recovered(api);
  });

  test('a session that begins where nothing may be written, as on a standby after a failover, is not kept', async () => {
    const admin = postgres(server.url, { max: 1, connection: { default_transaction_read_only: false } });
    await admin`alter database postgres set default_transaction_read_only = on`;
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'quotes_api'`;
    const refusals = () => api.logged('in a read-only transaction').length;
    const before = refusals();
    const refused = async () => (await api.quote()).status === 500 && refusals() > before;
    await until(refused, 'a session that may not write has begun', 10_000);
    await admin`alter database postgres reset default_transaction_read_only`;
    await admin.end();
    await recovered(api);
    expect(await api.call({ path: '/v1/notifications/test', body: undefined })).toMatchObject({
      status: 409,
    });
  });

  test('hung: 500 within the deadline, then on', async () => {
    await server.freeze();
    const before = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.quote()));
    const took = performance.now() - before;
    await server.unfreeze();
    for (const answer of answers) expect(answer).toMatchObject(SERVER_FAULT);
    // Key and insert may each wait for their deadline of 1.5 s.
    expect(took).toBeLessThan(4_500);
    await recovered(api);
  });
});

describe('behind a proxy that fails', () => {
  let proxy: TcpProxy;
  const api = useApi(async () => {
    proxy = await startTcpProxy({ port: Number(new URL(testServerUrl()).port) });
    return { poolPort: proxy.port };
  });
  afterAll(() => proxy.close());

  test('socket cut at the commit: 500, at most one row, never an id without a row', async () => {
    // Every connection of the pool has prepared the statement: it then takes one message.
    for (let calls = 0; calls < 5; calls += 1) expect((await api.quote()).status).toBe(200);
    const rows = () =>
      api.database.sql`select quote_id from quotes where merchant_reference = 'cut at commit'`;
    proxy.delay(500);
    const answer = api.quote({ merchant_reference: 'cut at commit' });
    // Stored after 500 ms; its answer would be here after a thousand.
    await until(async () => (await rows()).length === 1, 'the commit');
    proxy.cut();
    expect(await answer).toMatchObject(SERVER_FAULT);
    proxy.delay(0);
    expect(await rows()).toHaveLength(1);
    expect((await api.quote({ merchant_reference: 'again' })).status).toBe(200);
  });
});

describe('with statements that take their time', () => {
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

  test('a process that is ready has every connection that a quote may need, and keeps it while it is idle', async () => {
    await until(async () => (await api.readyStatus()) === 200, 'ready');
    await sessionsAre(QUOTE_STATEMENTS_AT_A_TIME, 'pfqs api quotes', 'idle');
    await sessionsAre(2, 'pfqs api', 'idle');
    // Others are closed after a second more than a statement may run.
    await pause(TIMEOUT_MS + 2_000);
    expect(await sessions('pfqs api quotes', 'idle')).toBe(QUOTE_STATEMENTS_AT_A_TIME);
    expect(await sessions('pfqs api', 'idle')).toBe(2);
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
    const leaking = openDatabaseAt(api.databaseUrl, { applicationName: 'leak' });
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
});
