import { connect, type Socket } from 'node:net';
import { goodQuote } from '../../testbed/values';
import { until } from '../../testbed/until';
import {
  exchange,
  expectBad,
  expectRefusal,
  hostileTarget,
  openConnections,
  openTls,
  pause,
  quoteBytes,
  titled,
} from './raw';

/** Request lines, lengths and chunks that a client, or a proxy that disagrees with us, can send. */

const { api, send } = hostileTarget();
const good = JSON.stringify(goodQuote);

describe('request lines', () => {
  test.each(
    titled([
      'GET / HTTP/1.1',
      'GET /v1/finance-quote HTTP/1.1',
      'TRACE /v1/finance-quote HTTP/1.1',
      'OPTIONS * HTTP/1.1',
      'POST /v1/finance-quote/ HTTP/1.1',
      'POST /v1/../v1/finance-quote HTTP/1.1',
      'POST /V1/finance-quote HTTP/1.1',
      'POST /v1/finance-quote%zz HTTP/1.1',
      'POST /%c0%ae%c0%ae/ HTTP/1.1',
      'GET /docs/..%2f..%2f..%2fpackage.json HTTP/1.1',
      `POST /${'a'.repeat(10_000)} HTTP/1.1`,
    ]),
  )('%j is 404', async (_title, line) => {
    expectRefusal(await send({ line }), 404, 'NOT_FOUND');
  });

  test.each(
    titled([
      'FOO /v1/finance-quote HTTP/1.1',
      'POST /v1/finance-quote',
      'POST /v1/finance-quote HTTP/2.0',
      'POST /v1/finance quote HTTP/1.1',
      'POST /v1/finance\0quote HTTP/1.1',
      '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
      '{"merchant_id":"M000001"}',
      `POST /${'a'.repeat(20_000)} HTTP/1.1`,
    ]),
  )('%j is 400', async (_title, line) => {
    expectBad(await send({ line }));
  });

  test.each(
    titled([
      'POST /v1/finance-quote?a=%00&__proto__[a]=1&a=2 HTTP/1.1',
      'POST /v1/finance-quote? HTTP/1.1',
      'POST /v1/finance-quote#fragment HTTP/1.1',
      'POST /v1/finance-quote HTTP/1.0',
      'POST  /v1/finance-quote HTTP/1.1',
      `POST /v1/finance-quote?${'a'.repeat(10_000)} HTTP/1.1`,
    ]),
  )('%j is served', async (_title, line) => {
    expect(await send({ line })).toMatchObject({ status: 200 });
  });
});

test('a plain request to the TLS port gets no answer of ours', async () => {
  const { answers } = await exchange({ port: api.port, ca: null }, quoteBytes(api));
  expect(answers).toEqual([]);
});

describe('lengths that contradict each other', () => {
  const trailers = 'X-Trailer: x\r\n'.repeat(3_000);
  const chunked = `${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`;

  test.each<[string, string[], string]>([
    ['a length and chunks', [`Content-Length: ${good.length}`, 'Transfer-Encoding: chunked'], chunked],
    ['two lengths', [`Content-Length: ${good.length}`, 'Content-Length: 5'], good],
    ['a list of lengths', [`Content-Length: ${good.length}, ${good.length}`], good],
    ['a negative length', ['Content-Length: -1'], good],
    ['a length past 64 bits', [`Content-Length: ${'9'.repeat(30)}`], good],
    ['chunks not last', ['Transfer-Encoding: chunked, identity'], chunked],
    ['unknown coding', ['Transfer-Encoding: xchunked'], chunked],
    ['a chunk size of letters', ['Transfer-Encoding: chunked'], 'xyz\r\n{}\r\n0\r\n\r\n'],
    ['a chunk size past 64 bits', ['Transfer-Encoding: chunked'], `${'f'.repeat(17)}\r\n{}\r\n0\r\n\r\n`],
    ['a chunk longer than announced', ['Transfer-Encoding: chunked'], '2\r\n{}{}{}\r\n0\r\n\r\n'],
    ['a huge chunk extension', ['Transfer-Encoding: chunked'], `2;${'x'.repeat(40_000)}\r\n{}\r\n0\r\n\r\n`],
    ['huge trailers', ['Transfer-Encoding: chunked'], chunked.slice(0, -2) + `${trailers}\r\n`],
  ])('%s: 400, and the connection ends', async (_what, headers, body) => {
    const bytes = quoteBytes(api, { without: ['content-length'], headers, body });
    const { answers, closed } = await exchange(api, bytes, { untilClosed: true, patienceMs: 15_000 });
    expectBad(answers[0]);
    expect(answers).toHaveLength(1);
    expect(closed).toBe(true);
  });

  test('a trailer is no header', async () => {
    const body = `${chunked.slice(0, -2)}Authorization: Bearer ${api.keys.test}\r\n\r\n`;
    const headers = ['Transfer-Encoding: chunked'];
    const answer = await send({ without: ['authorization', 'content-length'], headers, body });
    expectRefusal(answer, 401, 'UNAUTHENTICATED');
  });

  test('a body one byte short of its length is not acted on', async () => {
    const { answers } = await exchange(api, '', {
      drive: (socket) => socket.end(quoteBytes(api, { body: good }).subarray(0, -1)),
    });
    expectBad(answers[0]);
  });
});

describe('several requests at once', () => {
  test('good ones are answered in order', async () => {
    const ids = ['one', 'two', 'three'];
    const requests = ids.map((id) => quoteBytes(api, { headers: [`X-Request-Id: ${id}`] }));
    const bytes = Buffer.concat(requests);
    const { answers } = await exchange(api, bytes, { answers: 3 });
    expect(answers.map(({ status, headers }) => [status, headers['x-request-id']])).toEqual(
      ids.map((id) => [200, id]),
    );
  });

  test('garbage after a good one never takes its answer', async () => {
    const request = quoteBytes(api, { headers: ['X-Request-Id: good'] });
    const bytes = Buffer.concat([request, Buffer.from('garbage\r\n\r\n')]);
    const { answers, closed } = await exchange(api, bytes, { untilClosed: true });
    expect(answers[0]).toMatchObject({ status: 200, headers: { 'x-request-id': 'good' } });
    for (const answer of answers.slice(1)) expectBad(answer);
    expect(closed).toBe(true);
  });

  test('a refused body is read to its end or the connection ends: it is never taken for a request', async () => {
    const smuggled = quoteBytes(api, { headers: ['X-Request-Id: smuggled'] });
    const body = Buffer.concat([Buffer.alloc(20_000, ' '), smuggled]);
    const wait = { untilClosed: true, patienceMs: 2_000 };
    const { answers } = await exchange(api, quoteBytes(api, { body }), wait);
    expectBad(answers[0]);
    expect(answers).toHaveLength(1);
  });
});

/** Those that dawdle: slow.system.ts. */
describe('clients that close or reset their connections half-way', () => {
  test('a client that closes its side while it is served counts as gone', async () => {
    const { answers, closed, tookMs } = await exchange(api, '', {
      untilClosed: true,
      drive: (socket) => socket.end(quoteBytes(api)),
    });
    expect(closed).toBe(true);
    expect(tookMs).toBeLessThan(3_000);
    for (const answer of answers) expect(answer.status).toBe(200);
  });

  test.each([
    ['after half a head', 'POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\n'],
    ['after half a request line', 'POST /v1/fin'],
  ])('a client that ends %s is refused at once', async (_what, bytes) => {
    const { answers, closed, tookMs } = await exchange(api, '', {
      untilClosed: true,
      drive: (socket) => socket.end(bytes),
    });
    expectBad(answers[0]);
    expect(closed).toBe(true);
    expect(tookMs).toBeLessThan(3_000);
  });

  test('clients that vanish at any moment leave no fault and no connection behind', async () => {
    const whole = quoteBytes(api);
    for (let at = 0; at <= whole.length; at += 20) {
      const tcp = connect(api.port, '127.0.0.1');
      openTls(api, { socket: tcp }).once('secureConnect', function (this: Socket) {
        this.write(whole.subarray(0, at));
        setTimeout(() => (at % 40 === 0 ? tcp.resetAndDestroy() : this.destroy()), at % 7);
      });
    }
    await pause(1_500);
    expect(await api.quote()).toMatchObject({ status: 200 });
    // That of the quote stays.
    await until(async () => (await openConnections(api)) === 1, 'all others are closed');
  });
});
