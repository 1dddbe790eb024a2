import { connect } from 'node:tls';
import { Agent, request } from 'undici';
import { createAuthority, issueCertificate, type IssuedCertificate } from '../../runtime/certificates/issue';
import { newReference } from '../support/applications';
import { startTestApi, type TestApi } from '../support/api';
import { until } from '../support/delivery';
import { startHaProxy, type HaProxy } from '../support/haproxy';
import { APPLICATIONS, internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { fileNeeds } from '../support/needs';

fileNeeds('HAProxy');

/** Lender integrations before the real proxy, on the listener that docker-compose.yml puts on their network. */
const day = 86_400_000;
const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
const names = [{ type: 'dns', value: 'gateway' }] as const;
let api: TestApi;
let lender: InternalClient;
let open: HaProxy;
let guarded: HaProxy;
let theirs: IssuedCertificate;
let strangers: IssuedCertificate;
const agents: Agent[] = [];

beforeAll(async () => {
  api = await startTestApi({});
  lender = await internalClient(api);
  const authority = await createAuthority('A lender', validity);
  theirs = await issueCertificate(authority, names, validity, ['clientAuth']);
  const other = await createAuthority('Somebody else', validity);
  strangers = await issueCertificate(other, names, validity, ['clientAuth']);
  const both = [
    { port: api.port, internalPort: api.internalPort },
    { port: api.port, internalPort: api.internalPort },
  ] as const;
  open = await startHaProxy(both);
  guarded = await startHaProxy(both, { lenderCa: authority.cert });
  for (const proxy of [open, guarded])
    await until(async () => (await proxy.up()).length === 2, 'the proxy sends to both', 30_000);
}, 120_000);

afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.destroy()));
  await open?.close();
  await guarded?.close();
  await api?.close();
});

interface Call {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
  readonly certificate?: IssuedCertificate;
}

async function call(proxy: HaProxy, { method = 'GET', path, body, certificate }: Call) {
  const agent = new Agent({ connect: { ca: proxy.ca, ...certificate } });
  agents.push(agent);
  const answer = await request(`${proxy.lendersUrl}${path}`, {
    method,
    dispatcher: agent,
    headers: { authorization: `Bearer ${lender.key}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, body: JSON.parse(text) };
}

async function openApplication(proxy: HaProxy, certificate?: IssuedCertificate) {
  const quote = await api.quote({ merchant_id: SHOP });
  const body = {
    lender: 'lender_a',
    lender_reference: newReference(),
    finance_link: quote.body.data.products[0].merchant_finance_url,
  };
  return call(proxy, { method: 'POST', path: APPLICATIONS, body, ...(certificate && { certificate }) });
}

test('an application is opened and moved on over TLS', async () => {
  const opened = await openApplication(open);
  expect(opened).toMatchObject({ status: 200, headers: { 'x-request-id': expect.any(String) } });
  const path = `${APPLICATIONS}/${opened.body.data.credit_application_id}`;
  const event = { lender_event_id: 'one', status: 'accepted', occurred_at: new Date().toISOString() };
  const told = await call(open, { method: 'POST', path: `${path}/lender-events`, body: event });
  expect(told.body.data).toMatchObject({ outcome: 'applied' });
  expect((await call(open, { path })).body.data).toMatchObject({ status: 'accepted' });
});

test.each(['/health', '/ready', '/metrics', '/', '/v1/finance-quote', '/internal/v2', '//metrics'])(
  '%s is not theirs',
  async (path) => {
    const { status, body } = await call(open, { path });
    expect(status).toBe(404);
    expect(body).toEqual({ success: false, error: { code: 'NOT_FOUND', message: expect.any(String) } });
  },
);

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

test('without TLS nothing is answered', async () => {
  const plain = open.lendersUrl.replace('https', 'http');
  await expect(fetch(`${plain}/openapi.json`)).rejects.toThrow(/\w/);
});

test('the keys of partners and the public API have no meaning there', async () => {
  const answer = await request(`${open.lendersUrl}${APPLICATIONS}/app_01M81D4CH2WMHNS9FCP9KJFFXH`, {
    dispatcher: new Agent({ connect: { ca: open.ca } }),
    headers: { authorization: `Bearer ${api.keys.test}` },
  });
  expect(answer.statusCode).toBe(401);
  await answer.body.dump();
});

test('with an authority of the lenders, a client without its certificate is refused', async () => {
  await expect(openApplication(guarded)).rejects.toThrow(/certificate required|socket|other side closed/i);
  await expect(openApplication(guarded, strangers)).rejects.toThrow(/unknown ca|socket|other side closed/i);
  expect(await openApplication(guarded, theirs)).toMatchObject({ status: 200 });
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
    const { port, internalPort } = limited;
    proxy = await startHaProxy([
      { port, internalPort },
      { port, internalPort },
    ]);
    await until(async () => (await proxy.up()).length === 2, 'the proxy sends to both', 30_000);
    agent = new Agent({ connect: { ca: proxy.ca }, connections: 40 });
  }, 120_000);

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
    agents.push(own);
    for (const { key } of [known, fresh]) expect(await ask(key, '203.0.113.1', own)).toBe(404);
    expect(performance.now() - before).toBeLessThan(10_000);
    expect(new Set(await Promise.all(flood))).toEqual(new Set([429]));
  }, 120_000);
});
