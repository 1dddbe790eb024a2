import { connect, type Socket } from 'node:net';
import { MOST_UNPROVEN_CONNECTIONS, sourceOf } from '../../api/limits';
import {
  exchange,
  expectLimits,
  expectRefusal,
  openConnections,
  openTls,
  pause,
  quoteBytes,
} from '../hostile/raw';
import { startTestApi, type TestApi } from '../support/api';
import { goodQuote } from '../../testbed/values';
import { until } from '../../testbed/until';
import { refusal } from '../../testbed/http-call';
import { APPLICATIONS, internalClient } from '../support/internal-api';

/** Made-up keys, and connections without end, from the address that a partner shares. Without a proxy in front. */

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['::1', '0:0:0:0::/64'],
  ['192.0.2.1:51234', '192.0.2.1'],
  ['[2001:db8:1:2::7]:51234', '2001:db8:1:2::/64'],
  ['not an address', 'unknown'],
  [undefined, 'unknown'],
])('%s counts as %s', (address, source) => expect(sourceOf(address)).toBe(source));

const LIMIT = 20;
let api: TestApi;
const CHALLENGE = { 'ratelimit-policy': `${LIMIT};w=60`, 'www-authenticate': 'Bearer' };
const healthy = async () => (await fetch(`http://127.0.0.1:${api.internalPort}/health`)).status === 200;
const madeUp = (nth: number) => `sk_live_${String(nth).padStart(32, 'x')}`;

afterEach(() => api?.close());

test('a key is looked at over HTTPS only: a call without it counts for its address, whatever the key', async () => {
  const environment = { KEYLESS_CALLS_PER_MINUTE: '1', TRUSTED_PROXIES: '127.0.0.1' };
  api = await startTestApi({ ownTls: false, environment });
  const headers = { 'x-forwarded-proto': 'http' };
  const call = () => api.call({ method: 'GET', path: '/v1/webhook-keys', headers });
  const answer = await call();
  expect(answer).toMatchObject({ status: 400 });
  expect(answer.headers).not.toHaveProperty('ratelimit-limit');
  expect(await call()).toMatchObject({ status: 429, headers: { 'www-authenticate': 'Bearer' } });
});

test('above the limit of its key an unknown path is 404 still, and the documentation 429', async () => {
  api = await startTestApi({ environment: { RATE_LIMIT_PER_MINUTE: '2' } });
  const answers = [];
  for (const path of ['/v1/quotes', '/v1/quotes', '/v1/quotes', '/openapi.json', '/v1/webhook-keys'])
    answers.push(await api.get(path));
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 429, 429]);
  for (const { headers } of answers.slice(1))
    expect(headers).toMatchObject({ 'ratelimit-remaining': '0', 'x-ratelimit-remaining': '0' });
  expect(answers[2]?.headers).not.toHaveProperty('retry-after');
  const line = { route: 'none', keyId: expect.stringMatching(/^key_/) };
  expect(api.logged('"status":404').at(-1)).toMatchObject(line);
});

describe('with a limit of 20 calls', () => {
  beforeEach(async () => {
    api = await startTestApi({ environment: { KEYLESS_CALLS_PER_MINUTE: String(LIMIT) } });
  });

  test('made-up keys are refused with 401, above the limit with 429; a valid key never', async () => {
    for (let nth = 0; nth < LIMIT; nth += 1)
      expect(await api.quote({}, { key: madeUp(nth) })).toMatchObject({ status: 401 });
    const flood = await Promise.all(
      Array.from({ length: 30 }, (_, nth) =>
        api.quote({}, { key: nth % 2 === 0 ? madeUp(nth) : api.keys.test }),
      ),
    );
    for (const [nth, { status, headers, body }] of flood.entries()) {
      if (nth % 2 === 1) {
        expect(status).toBe(200);
        continue;
      }
      expect({ status, body }).toMatchObject(refusal(429, 'RATE_LIMIT_EXCEEDED'));
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
      expect(headers).toMatchObject({ ...CHALLENGE, 'ratelimit-remaining': '0' });
    }
    expect(await healthy()).toBe(true);
    expect(await api.metric('pfqs_keyless_refused_total')).toBe(15);
  });

  test('what a valid key gets refused for is not counted', async () => {
    for (let nth = 0; nth < LIMIT * 2; nth += 1)
      expect(await api.quote({ loan_amount: '1.00' })).toMatchObject({ status: 422 });
    expect(await api.quote({}, { key: null })).toMatchObject({ status: 401 });
  });

  const CALLS = {
    'an unknown path': 'GET /v1/quotes HTTP/1.1\r\nHost: a',
    'an unknown method': 'DELETE /v1/finance-quote HTTP/1.1\r\nHost: a',
    'a path that is none': 'GET /%zz HTTP/1.1\r\nHost: a',
    'two hosts': 'GET /v1/webhook-keys HTTP/1.1\r\nHost: a\r\nHost: b',
    'the documentation': 'GET /llms.txt HTTP/1.1\r\nHost: a',
    'the contract': 'GET /openapi.json HTTP/1.1\r\nHost: a',
  };

  test('calls of every kind with a valid key count for the key alone, without one for the address', async () => {
    const call = async (head: string, key: string) => {
      const bytes = `${head}\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
      return (await exchange(api, bytes)).answers[0];
    };
    const usual = new Map<string, number | undefined>();
    const remaining: number[] = [];
    // More of each than the address has.
    for (let nth = 0; nth < LIMIT + 1; nth += 1)
      for (const [what, head] of Object.entries(CALLS)) {
        const answer = await call(head, api.keys.test);
        expect([what, answer?.status]).toEqual([what, usual.get(what) ?? answer?.status]);
        usual.set(what, answer?.status);
        expect([200, 400, 404]).toContain(answer?.status);
        expectLimits(answer);
        expect(answer?.headers).not.toHaveProperty('www-authenticate');
        remaining.push(Number(answer?.headers['ratelimit-remaining']));
      }
    expect(remaining).toEqual(remaining.map((_, at) => (remaining[0] ?? 0) - at));
    // Without one the address has all of its calls left, whatever they are of.
    const heads = Object.entries(CALLS);
    for (let nth = 0; nth < LIMIT; nth += 1) {
      const [what, head] = heads[nth % heads.length] ?? ['', ''];
      expect([what, (await call(head, madeUp(nth)))?.status]).toEqual([what, usual.get(what)]);
    }
    for (const [what, head] of heads) {
      expectRefusal(await call(head, madeUp(99)), 429, 'RATE_LIMIT_EXCEEDED');
      expect([what, (await call(head, api.keys.test))?.status]).toEqual([what, usual.get(what)]);
    }
  });

  test('above the limit an answer takes a second, and a connection that does not wait for it ends', async () => {
    for (let nth = 0; nth < LIMIT; nth += 1) await api.quote({}, { key: madeUp(nth) });
    const refused = quoteBytes(api, { without: ['authorization'] });
    const one = await exchange(api, refused);
    expectRefusal(one.answers[0], 429, 'RATE_LIMIT_EXCEEDED');
    expect(one.tookMs).toBeGreaterThan(900);
    const piped = await exchange(api, Buffer.concat([refused, refused, refused]), { answers: 3 });
    expect(piped).toMatchObject({ answers: [], closed: true });
    expect(piped.tookMs).toBeLessThan(900);
  });

  test('a connection too many closes the oldest that brought no valid key; others stay, and new ones are served', async () => {
    const keyed = openTls(api);
    keyed.once('secureConnect', () => keyed.write(quoteBytes(api)));
    const first = await new Promise<string>((resolve) => keyed.once('data', (data) => resolve(String(data))));
    expect(first).toContain('200 OK');

    let ended = 0;
    const idle: Socket[] = [];
    // Without a handshake, so that the first is not too slow yet when the last is there. Fifty at a time: more than the system's
    // queue of connections that nobody has accepted yet would be opened again after seconds.
    while (idle.length < MOST_UNPROVEN_CONNECTIONS + 100) {
      const some = Array.from({ length: 50 }, () => connect(api.port, '127.0.0.1'));
      idle.push(...some);
      for (const socket of some) socket.on('error', () => undefined).once('close', () => (ended += 1));
      await Promise.all(
        some.map((socket) => new Promise((open) => socket.once('connect', open).once('close', open))),
      );
    }
    await until(() => ended >= 100, 'the oldest are closed');
    await until(async () => (await openConnections(api)) <= MOST_UNPROVEN_CONNECTIONS + 5, 'they are gone');
    expect(await openConnections(api)).toBeGreaterThan(MOST_UNPROVEN_CONNECTIONS - 50);
    expect(ended).toBeLessThan(150);
    expect(await api.metric('pfqs_connections_closed_total')).toBe(ended);
    expect(await healthy()).toBe(true);

    // The one from before, older than all of them, and a new one.
    const again = new Promise<string>((resolve) => keyed.once('data', (data) => resolve(String(data))));
    keyed.write(quoteBytes(api));
    expect(await again).toContain('200 OK');
    expect(await api.call({ body: goodQuote })).toMatchObject({ status: 200 });
    for (const socket of [keyed, ...idle]) socket.destroy();
    await until(async () => (await openConnections(api)) <= 3, 'nothing is left over');
    await pause(0);
  });

  /** Statements that looked service keys up, whatever for. */
  const lookUps = async () => {
    const [row] = await api.database.sql`
    select seq_scan + coalesce(idx_scan, 0) as times from pg_stat_user_tables where relname = 'service_keys'`;
    return Number(row?.['times']);
  };
  const madeUpServiceKey = (nth: number) => `svc_${String(nth).padStart(32, 'x')}`;

  test('made-up service keys are refused in the same way, and looked up together; a valid one is never refused', async () => {
    const lender = await internalClient(api);
    const other = await internalClient(api, { lender: 'lender_b' });
    // 404 with a key that is accepted: there is no such application.
    const statusOf = async (key: string) =>
      (await lender.call({ method: 'GET', path: `${APPLICATIONS}/app_1`, key })).status;
    expect(await statusOf(lender.key)).toBe(404);
    for (let nth = 0; nth < LIMIT; nth += 1) expect(await statusOf(madeUpServiceKey(nth))).toBe(401);
    const flood = await Promise.all(
      Array.from({ length: 300 }, (_, nth) => lender.call({ key: madeUpServiceKey(nth) })),
    );
    for (const { status, headers, body } of flood) {
      expect({ status, body }).toMatchObject(refusal(429, 'RATE_LIMIT_EXCEEDED'));
      expect(headers).toMatchObject(CHALLENGE);
    }
    // Known here, and never seen here.
    expect([await statusOf(lender.key), await statusOf(other.key)]).toEqual([404, 404]);
    await until(async () => (await lookUps()) > LIMIT, 'the statistics arrive', 30_000);
    expect(await lookUps()).toBeLessThan(LIMIT + 40);
    expect(await api.metric('pfqs_keyless_refused_total')).toBe(300);
  });
});
