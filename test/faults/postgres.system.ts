import postgres from 'postgres';
import { type TestApi, useApi } from '../support/api';
import { testServerUrl } from '../support/database';
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
