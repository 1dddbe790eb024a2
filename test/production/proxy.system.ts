import { once } from 'node:events';
import { connect } from 'node:tls';
import { exchange, expectRefusal, openTls, quoteBytes, requestBytes, SECURITY_HEADERS } from '../hostile/raw';
import { startTestApi, type TestApi } from '../support/api';
import { goodQuote } from '../../testbed/values';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { until } from '../../testbed/until';
import { startHaProxy, type HaProxy } from '../../testbed/haproxy';
import { fileNeeds } from '../support/needs';

fileNeeds('HAProxy');

/** deploy/proxy/haproxy.cfg in front of an API, with hostile clients. */

let api: TestApi;
let proxy: HaProxy;
let target: { port: number; ca: string };
let plain: { port: number; ca: null };
/** How long the proxy keeps a connection after an answer, while the tests below run. */
let idleMs: Promise<number>;
beforeAll(async () => {
  api = await startTestApi({
    ownTls: false,
    environment: { TRUSTED_PROXIES: '127.0.0.1', KEYLESS_CALLS_PER_MINUTE: '300' },
  });
  proxy = await startHaProxy(api);
  target = { port: Number(new URL(proxy.url).port), ca: proxy.ca };
  plain = { port: Number(new URL(proxy.plainUrl).port), ca: null };
  idleMs = measureIdle();
});
afterAll(async () => {
  await proxy?.close();
  await api?.close();
});

async function measureIdle(): Promise<number> {
  const socket = openTls(target);
  await once(socket, 'secureConnect');
  socket.write(quoteBytes(api));
  await once(socket, 'data');
  const begunMs = performance.now();
  await once(socket, 'end');
  return performance.now() - begunMs;
}

interface Line {
  readonly requestId: string;
  readonly status: number;
  readonly path: string;
  readonly nth: string;
}
/** Every line about a request: each must be JSON. */
const proxyLines = () =>
  proxy
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
const apiLines = () =>
  api.logs
    .map((line) => JSON.parse(line) as { requestId?: string; msg: string })
    .filter(({ msg }) => msg === 'request');
const answerTo = async (bytes: string | Buffer) => (await exchange(target, bytes)).answers[0];
const quote = (parts: Parameters<typeof quoteBytes>[1] = {}) => answerTo(quoteBytes(api, parts));
const madeUp = (nth: number) =>
  quoteBytes(api, { without: ['authorization'], headers: [`Authorization: Bearer sk_live_${nth}xxxxxxxx`] });

describe('answers', () => {
  test('carry HSTS, nosniff and no-store, with TLS and without', async () => {
    const answer = await quote();
    expect(answer).toMatchObject({ status: 200, headers: SECURITY_HEADERS });
    expect(answer?.headers).not.toHaveProperty('www-authenticate');
    expectRefusal((await exchange(plain, quoteBytes(api))).answers[0], 400, 'INVALID_REQUEST');
    expectRefusal(await answerTo('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n'), 404, 'NOT_FOUND');
  });

  test('of a request without Host are 400 in the form of the contract', async () => {
    expectRefusal(await quote({ without: ['host'] }), 400, 'INVALID_REQUEST');
  });

  test.each([
    ['two Hosts', () => quoteBytes(api, { headers: ['Host: evil.example'] }), 400],
    ['an ESC in the path', () => Buffer.from('GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n'), 400],
    ['no HTTP', () => Buffer.from('NONSENSE\r\n\r\n'), 400],
    ['the beginning of HTTP/2', () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 400],
    [
      'a coding of the transfer besides chunked',
      () => quoteBytes(api, { without: ['content-length'], headers: ['Transfer-Encoding: gzip, chunked'] }),
      422,
    ],
  ])('are none where the parser of HAProxy 2.6 refuses: %s', async (_what, bytes, status) => {
    const before = apiLines().length;
    expect(await exchange(target, bytes(), { untilClosed: true })).toMatchObject({
      answers: [],
      closed: true,
    });
    expect(apiLines()).toHaveLength(before);
    await until(() => proxyLines().at(-1)?.status === status, 'its line');
  });

  test('speak HTTP/1.1, with forward secrecy', async () => {
    const socket = connect({ ...target, host: 'localhost', ALPNProtocols: ['h2', 'http/1.1'] });
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('http/1.1');
    socket.destroy();
    const weak = connect({
      ...target,
      host: 'localhost',
      maxVersion: 'TLSv1.2',
      ciphers: 'ECDHE-ECDSA-AES128-SHA',
    });
    await expect(once(weak, 'secureConnect')).rejects.toThrow(/handshake/i);
  });
});

describe('the log', () => {
  test.each<[string, string[], string | undefined]>([
    ['none', [], undefined],
    ['an ordinary one', ['X-Request-Id: mine-1'], 'mine-1'],
    ['quotes and backslashes', ['X-Request-Id: a"b\\c","status":"200'], 'a"b\\c","status":"200'],
    ['128 characters', [`X-Request-Id: ${'"'.repeat(128)}`], '"'.repeat(128)],
    ['129 characters', [`X-Request-Id: ${'"'.repeat(129)}`], undefined],
    ['8 KiB', [`X-Request-Id: ${'\\'.repeat(8_192)}`], undefined],
    ['a space', ['X-Request-Id: a b'], undefined],
    ['a comma', ['X-Request-Id: a,b'], 'a,b'],
    ['past ASCII', ['X-Request-Id: caf\u00e9'], undefined],
    ['two', ['X-Request-Id: one', 'X-Request-Id: two'], undefined],
    ['a correlation id', ['X-Correlation-Id: mine-2'], 'mine-2'],
    ['both', ['X-Correlation-Id: mine-3', 'X-Request-Id: mine-4'], 'mine-4'],
    ['a bad one and a correlation id', ['X-Correlation-Id: mine-5', 'X-Request-Id: a b'], 'mine-5'],
  ])('of proxy and API names the request id that was answered: %s', async (_what, headers, id) => {
    const answer = await quote({ headers });
    expect(answer?.status).toBe(200);
    const answered = answer?.headers['x-request-id'] ?? '';
    if (id === undefined) expect(answered).toMatch(/^rq_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    else expect(answered).toBe(id);
    const own = () => proxyLines().filter(({ requestId }) => requestId === answered);
    await until(() => own().length > 0, 'the line of the proxy');
    expect(own()).toHaveLength(1);
    expect(apiLines().filter(({ requestId }) => requestId === answered)).toHaveLength(1);
  });

  test.each([
    ['quotes', '/"},{"x":"\\', 'User-Agent: "\\'],
    ['8 KiB', `/${'"'.repeat(8_000)}`, `User-Agent: ${'\\'.repeat(8_000)}`],
    ['ESC in the user agent', '/ua', 'User-Agent: \x1b[2J\x1b]0;owned\x07'],
    ['escapes of line breaks', '/a%0d%0ab%1b', 'User-Agent: %0d%0a'],
  ])('is one line of JSON for a path or user agent with %s', async (_what, path, agent) => {
    const before = proxyLines().length;
    const answer = await answerTo(`GET ${path} HTTP/1.1\r\nHost: a\r\n${agent}\r\n\r\n`);
    await until(() => proxyLines().length > before, 'the line');
    const [line, ...more] = proxyLines().slice(before);
    expect(more).toEqual([]);
    expect(line).toMatchObject({ status: answer?.status, path: path.slice(0, 512) });
    // What the API's parser refuses, it answers with an id of its own, which the proxy passes on.
    expect(line?.requestId).toBe(answer?.headers['x-request-id']);
    expect(apiLines().filter(({ requestId }) => requestId === line?.requestId)).toHaveLength(1);
    expect(proxy.output()).not.toMatch(/[\0-\x09\x0b-\x1f\x7f]/);
  });

  test('holds a few lines a second of a flood of refusals, and says how many there were', async () => {
    const before = proxyLines().length;
    await exchange(target, Buffer.concat(Array.from({ length: 250 }, (_, nth) => madeUp(nth))), {
      answers: 250,
    });
    await quote({ headers: ['X-Request-Id: after-the-flood'] });
    await until(() => proxyLines().some(({ requestId }) => requestId === 'after-the-flood'), 'the next line');
    const refused = proxyLines()
      .slice(before)
      .filter(({ status }) => status === 401);
    expect(refused.length).toBeGreaterThanOrEqual(10);
    expect(refused.length).toBeLessThan(60);
    expect(Number(refused.at(-1)?.nth) - Number(refused[0]?.nth)).toBeGreaterThan(100);
  });
});

describe('a process that says too late that it is ready', () => {
  let ready: TcpProxy;
  let other: HaProxy;
  beforeAll(async () => {
    ready = await startTcpProxy({ port: api.internalPort });
    other = await startHaProxy({ ...api, readyPort: ready.port });
  });
  afterAll(async () => {
    await other?.close();
    await ready?.close();
  });

  test('gets calls all the same when there is no other', async () => {
    const health = async (status: number) => (await fetch(other.healthUrl)).status === status;
    const at = (url: string) => ({ port: Number(new URL(url).port), ca: other.ca });
    ready.freeze();
    await until(() => health(503), 'it counts as down');
    expect((await exchange(at(other.url), quoteBytes(api))).answers).toMatchObject([{ status: 200 }]);
    const document = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n';
    expect((await exchange(at(other.lendersUrl), document)).answers).toMatchObject([{ status: 200 }]);
    ready.unfreeze();
    await until(() => health(200), 'it is up again');
  });
});

test('a reload or stop closes no connection on which a call may be under way', async () => {
  const other = await startHaProxy(api);
  const socket = openTls({ port: Number(new URL(other.url).port), ca: other.ca });
  await once(socket, 'secureConnect');
  const asked = async () => {
    socket.write(quoteBytes(api));
    return String((await once(socket, 'data'))[0]);
  };
  expect(await asked()).toMatch(/^HTTP\/1.1 200 /);
  const ended = other.end('SIGUSR1');
  const listens = () => fetch(other.plainUrl, { headers: { connection: 'close' } }).catch(() => undefined);
  await until(async () => (await listens()) === undefined, 'it stops to listen');
  expect(await asked()).toMatch(/^HTTP\/1.1 200 [^]*\r\nconnection: close\r\n/i);
  expect(await ended).toBe(0);
  await other.close();
});

describe('an address that floods', () => {
  test('has its calls delayed, but none with a valid key, not even the first of a new one', async () => {
    let refused = await exchange(target, madeUp(0));
    for (let sent = 1; sent < 400 && refused.answers[0]?.status === 401; sent += 1)
      refused = await exchange(target, madeUp(sent));
    expectRefusal(refused.answers[0], 429, 'RATE_LIMIT_EXCEEDED');
    expect(refused.tookMs).toBeGreaterThan(900);
    const known = await exchange(target, quoteBytes(api));
    expect(known).toMatchObject({ answers: [{ status: 200 }] });
    expect(known.tookMs).toBeLessThan(900);
    const bytes = requestBytes({
      ...target,
      line: 'POST /v1/finance-quote HTTP/1.1',
      key: api.keys.live,
      body: JSON.stringify(goodQuote),
    });
    expect(await exchange(target, bytes)).toMatchObject({ answers: [{ status: 200 }] });
    const again = await exchange(target, bytes);
    expect(again).toMatchObject({ answers: [{ status: 200 }] });
    expect(again.tookMs).toBeLessThan(900);
    expect((await fetch(proxy.healthUrl)).status).toBe(200);
  });

  test('is refused connections above its limit; those it has are served, and so is who shares it with a valid key', async () => {
    // No call with a valid key has come through this one yet.
    const other = await startHaProxy(api);
    const fresh = { port: Number(new URL(other.url).port), ca: other.ca };
    const keyed = openTls(fresh);
    await once(keyed, 'secureConnect');
    let closed = 0;
    let opened = 0;
    const idle = Array.from({ length: 700 }, () =>
      openTls(fresh)
        .once('close', () => (closed += 1))
        .once('secureConnect', () => (opened += 1)),
    );
    await until(() => opened + closed >= idle.length, 'they are decided');
    expect(opened).toBeGreaterThan(450);
    expect(opened).toBeLessThan(500);
    keyed.write(quoteBytes(api));
    const [answer] = (await once(keyed, 'data')) as [Buffer];
    expect(answer.toString()).toContain('200 OK');
    // The API, in this test's process, may have been too busy to say that it is ready.
    await until(async () => (await fetch(other.healthUrl)).status === 200, 'it is up');
    expect((await exchange(fresh, quoteBytes(api))).answers).toMatchObject([{ status: 200 }]);
    for (const socket of [keyed, ...idle]) socket.destroy();
    await other.close();
  });
});

test('an idle connection stays open for as long as an answer says', async () => {
  expect((await quote())?.headers['keep-alive']).toBe('timeout=20');
  expect(await idleMs).toBeGreaterThan(19_500);
});
