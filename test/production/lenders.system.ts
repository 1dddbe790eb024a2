import { connect } from 'node:tls';
import { Agent, request } from 'undici';
import { exchange } from '../hostile/raw';
import { newReference } from '../support/applications';
import { startTestApi, type TestApi } from '../support/api';
import { startHaProxy, type HaProxy } from '../../testbed/haproxy';
import { APPLICATIONS, internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { fileNeeds } from '../support/needs';

fileNeeds('HAProxy');

/** Lender integrations before the real proxy, on the listener that docker-compose.yml puts on their network. */
let api: TestApi;
let lender: InternalClient;
let open: HaProxy;
let dispatcher: Agent;

beforeAll(async () => {
  api = await startTestApi({});
  lender = await internalClient(api);
  open = await startHaProxy(api, api);
  dispatcher = new Agent({ connect: { ca: open.ca } });
});

afterAll(async () => {
  await dispatcher?.destroy();
  await open?.close();
  await api?.close();
});

test.each(['/health', '/ready', '/metrics', '/', '/v1/finance-quote', '/internal/v2', '//metrics'])(
  '%s is not theirs',
  async (path) => {
    const headers = { authorization: `Bearer ${lender.key}` };
    const { statusCode, body } = await request(`${open.lendersUrl}${path}`, { dispatcher, headers });
    expect(statusCode).toBe(404);
    expect(await body.json()).toEqual({
      success: false,
      error: { code: 'NOT_FOUND', message: expect.any(String) },
    });
  },
);

test('a connection that was opened and not used ends without an answer', async () => {
  const lenders = { port: Number(new URL(open.lendersUrl).port), ca: open.ca };
  const unused = { untilClosed: true, patienceMs: 15_000, drive: () => undefined };
  expect(await exchange(lenders, '', unused)).toMatchObject({ closed: true, answers: [] });
});

/** Sends a request line as it stands. @returns the status line. */
const statusOf = (line: string) =>
  new Promise<string>((resolve, reject) => {
    const { hostname, port } = new URL(open.lendersUrl);
    const socket = connect({ host: hostname, port: Number(port), ca: open.ca, servername: 'localhost' }, () =>
      socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
    );
    socket.once('data', (data) => {
      resolve(data.toString().split('\r\n')[0] ?? '');
      socket.destroy();
    });
    socket.once('error', reject);
  });

test.each([
  'GET /internal/v1/../../metrics',
  'GET /internal/v1/..%2f..%2fmetrics',
  'GET /internal/v1/%2e%2e/%2e%2e/metrics',
  'GET http://localhost/metrics',
  'GET http://localhost/internal/v1/../../ready',
  'GET /metrics?/internal/v1/',
  'GET /openapi.json/../metrics',
])('%s leads nowhere', async (line) => {
  expect(await statusOf(line)).toMatch(/^HTTP\/1\.1 40[04] /);
});

describe('made-up service keys', () => {
  const LIMIT = 20;
  let limited: TestApi;
  let proxy: HaProxy;
  let known: InternalClient;
  let agent: Agent;

  beforeAll(async () => {
    limited = await startTestApi({
      environment: { KEYLESS_CALLS_PER_MINUTE: String(LIMIT), TRUSTED_PROXIES: '127.0.0.1' },
    });
    known = await internalClient(limited);
    proxy = await startHaProxy(limited, limited);
    agent = new Agent({ connect: { ca: proxy.ca }, connections: 40 });
  });

  afterAll(async () => {
    await agent?.destroy();
    await proxy?.close();
    await limited?.close();
  });

  const madeUp = (nth: number) => `svc_${String(nth).padStart(32, 'x')}`;
  const ask = async (key: string, source = '203.0.113.1', dispatcher = agent) => {
    const { statusCode, body } = await request(`${proxy.lendersUrl}${APPLICATIONS}/app_1`, {
      dispatcher,
      headers: { authorization: `Bearer ${key}`, 'x-forwarded-for': source },
    });
    await body.dump();
    return statusCode;
  };

  test('are counted by the address that the proxy sees, whatever they name', async () => {
    const statuses = [];
    for (let nth = 0; nth < LIMIT + 2; nth += 1) statuses.push(await ask(madeUp(nth), `203.0.113.${nth}`));
    expect(statuses).toEqual([...Array.from({ length: LIMIT }, () => 401), 429, 429]);
  });

  test('of a flood wait in a queue of their own; valid keys are served meanwhile, a new one too', async () => {
    // Known to the proxy once it has been answered 200.
    const quote = await limited.quote({ merchant_id: SHOP });
    const [product] = quote.body.data.products;
    const link = { lender: 'lender_a', finance_link: product.merchant_finance_url };
    const opened = await request(`${proxy.lendersUrl}${APPLICATIONS}`, {
      method: 'POST',
      dispatcher: agent,
      headers: { authorization: `Bearer ${known.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...link, lender_reference: newReference() }),
    });
    expect(opened.statusCode).toBe(200);
    await opened.body.dump();
    const fresh = await internalClient(limited, { lender: 'lender_b' });

    const flood = Array.from({ length: 400 }, (_, nth) => ask(madeUp(nth)));
    // The proxy has counted 300 then: from here on strangers wait for one another.
    await Promise.all(flood.slice(0, 320));
    const before = performance.now();
    const own = new Agent({ connect: { ca: proxy.ca } });
    for (const { key } of [known, fresh]) expect(await ask(key, '203.0.113.1', own)).toBe(404);
    await own.destroy();
    expect(performance.now() - before).toBeLessThan(10_000);
    expect(new Set(await Promise.all(flood))).toEqual(new Set([429]));
  });
});
