import { startTestApi, type TestApi } from '../support/api';
import { exchange } from '../hostile/raw';
import { until } from '../../testbed/until';

let api: TestApi;
beforeEach(async () => {
  api = await startTestApi({ environment: { RATE_LIMIT_PER_MINUTE: '60' } });
});
afterEach(() => api.close());

const requests = (status: number) => api.logged('"msg":"request"').filter((line) => line.status === status);
const leftOut = (status: number) =>
  api
    .logged('"msg":"refusals not logged"')
    .reduce((sum, line) => sum + (line.status === status ? line.leftOut : 0), 0);
const counted = (route: string, status: number) =>
  api.metric(`pfqs_http_request_seconds_count{route="${route}",status="${status}"}`);

test('a flood of refusals leaves a few lines a second, and how many were left out; metrics count all', async () => {
  for (let nth = 0; nth < 300; nth += 1) await api.quote({}, { key: null });
  await api.quote();
  await until(() => requests(401).length + leftOut(401) === 300, 'the rest is reported');
  const seconds = new Set(api.logged('').map((line) => String(line.time).slice(0, 19))).size;
  expect(requests(401).length).toBeLessThanOrEqual(10 * (seconds + 1));
  expect(leftOut(401)).toBeGreaterThan(100);
  expect(requests(200)).toHaveLength(1);
  expect(await counted('/v1/finance-quote', 401)).toBe(300);
});

test('each refusal of a valid key within its limit has its line; those above the limit are sampled', async () => {
  for (let nth = 0; nth < 200; nth += 1) await api.quote({ loan_amount: '1.00' });
  expect(requests(422)).toHaveLength(60);
  await until(() => requests(429).length + leftOut(429) === 140, 'the rest is reported');
  expect(leftOut(429)).toBeGreaterThan(20);
  expect(api.logged('"leftOut"')[0]).toMatchObject({ keyId: expect.any(String) });
});

test('one kind of refusal does not hide another', async () => {
  for (let nth = 0; nth < 50; nth += 1) await api.quote({}, { key: null });
  await api.call({ path: '/nowhere' });
  expect(requests(404)).toHaveLength(1);
});

test.each([
  ['a URL that is none', 'GET /%zz HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n', 404],
  ['ESC in the path', 'GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['a quote in the path', 'GET /"\\ HTTP/1.1\r\nHost: a\r\nUser-Agent: "\\\r\n\r\n', 404],
  [
    '8 KiB',
    `GET /${'"'.repeat(8_000)} HTTP/1.1\r\nHost: a\r\nUser-Agent: ${'\\"'.repeat(2_000)}\r\n\r\n`,
    404,
  ],
])('%s: one line with the request id that was answered, and it is counted', async (_what, bytes, status) => {
  const { answers } = await exchange(api, Buffer.from(bytes, 'latin1'));
  expect(answers[0]?.status).toBe(status);
  await until(() => requests(status).length > 0, 'the line');
  expect(requests(status)).toMatchObject([{ requestId: answers[0]?.headers['x-request-id'], route: 'none' }]);
  expect(await counted('none', status)).toBe(1);
});

test('a quote that the database refuses is logged by SQLSTATE and table, without what the caller sent', async () => {
  await api.database.sql.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'value4711 %', to_jsonb(new) using detail = 'value4711', hint = 'value4711', table = 'quotes';
    end $$;
    create trigger refuse before insert on quotes for each row execute function refuse()`);
  const { status } = await api.quote({ merchant_reference: 'words4711' });
  expect(status).toBe(500);
  const log = api.logs.join('');
  expect(log).toMatch(
    /"type":"PostgresError","message":"refused by Postgres","code":"P0001","table":"quotes"/,
  );
  expect(log).not.toMatch(/4711|insert into/i);
});
