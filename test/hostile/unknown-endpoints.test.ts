import http from 'node:http';
import { until } from '../../testbed/until';
import {
  exchange,
  expectRefusal,
  hostileTarget,
  LISTENERS,
  openConnections,
  requestBytes,
  type GoodRequest,
  type RequestParts,
} from './raw';

/** An unknown path or method is 404 whatever else the request has: its key, its body. */

const target = hostileTarget();

const PATHS = {
  public: ['/', '/v1/nothing', '/v1/finance-quote', '/v1/notifications/test', '/openapi.json'],
  internal: ['/', '/v1/finance-quote', '/internal/v1/credit-applications', '/health', '/internal/v1/nothing'],
};

/** What a path answers otherwise. */
const SERVED = new Set([
  'POST /v1/finance-quote public',
  'POST /v1/notifications/test public',
  'GET /openapi.json public',
  'POST /internal/v1/credit-applications internal',
  'GET /health internal',
]);

type Sent = Pick<RequestParts, 'headers' | 'body'>;
const json = 'Content-Type: application/json';
const BODIES: Readonly<Record<string, Sent>> = {
  none: { headers: [] },
  'empty, with a content type': { headers: [json, 'Content-Length: 0'] },
  'not JSON': { headers: [json, 'Content-Length: 1'], body: '{' },
  'of another type': { headers: ['Content-Type: text/plain', 'Content-Length: 2'], body: 'hi' },
  'of no type': { headers: ['Content-Length: 2'], body: 'hi' },
  'of a type that is none': { headers: ['Content-Type: ;', 'Content-Length: 2'], body: 'hi' },
  'too large': { headers: [json, 'Content-Length: 20000'], body: ' '.repeat(20_000) },
  'announced as huge': { headers: [json, 'Content-Length: 9007199254740991'] },
  compressed: { headers: [json, 'Content-Encoding: gzip', 'Content-Length: 3'], body: '\x1f\x8b\x08' },
  'chunks without end': { headers: [json, 'Transfer-Encoding: chunked'], body: '2\r\n{}\r\n' },
  'chunks of no form': { headers: [json, 'Transfer-Encoding: chunked'], body: 'xyz\r\n' },
};

function bytesOf(good: GoodRequest, line: string, sent: Sent, keyed: boolean): Buffer {
  const without = ['content-type', 'content-length', ...(keyed ? [] : ['authorization'])];
  return requestBytes(good, { body: '', ...sent, line, without });
}

describe.each(LISTENERS)('on the %s listener', (listener) => {
  const ask = async (method: string, path: string, sent: Sent, keyed: boolean) => {
    const good = target.requests[listener];
    const { answers } = await exchange(good, bytesOf(good, `${method} ${path} HTTP/1.1`, sent, keyed));
    return answers[0];
  };
  const isServed = (method: string, path: string) => SERVED.has(`${method} ${path} ${listener}`);

  // The answer to HEAD has no body: test/api/events/every-route.test.ts.
  const methods = http.METHODS.filter((method) => method !== 'HEAD');
  test.each(Object.entries(BODIES))('a body that is %s changes nothing', async (what, sent) => {
    for (const path of PATHS[listener])
      for (const method of what === 'none' ? methods : ['POST', 'PUT', 'GET', 'QUERY'])
        for (const keyed of isServed(method, path) ? [] : [true, false])
          expectRefusal(await ask(method, path, sent, keyed), 404, 'NOT_FOUND');
    // As a client sends it that has followed a redirect.
    const answer = await ask('GET', '/v1/finance-quote', sent, true);
    expect(answer?.body.error.message).toContain('no such endpoint for GET');
  });

  test('CONNECT to another host is 404 and ends the connection', async () => {
    const good = target.requests[listener];
    const line = 'CONNECT elsewhere.example:443 HTTP/1.1';
    const bytes = bytesOf(good, line, { headers: ['X-Request-Id: mine'] }, true);
    const { answers, closed } = await exchange(good, bytes, { untilClosed: true });
    expectRefusal(answers[0], 404, 'NOT_FOUND');
    expect(answers[0]?.headers).toMatchObject({ 'x-request-id': 'mine', connection: 'close' });
    expect([answers.length, closed]).toEqual([1, true]);
  });
});

test('the connection goes on where the body was whole', async () => {
  const good = target.requests.public;
  const wrong = bytesOf(good, 'PUT /v1/nothing HTTP/1.1', BODIES['too large'] as Sent, true);
  const { answers } = await exchange(good, Buffer.concat([wrong, requestBytes(good)]), { answers: 2 });
  expect(answers.map(({ status }) => status)).toEqual([404, 200]);
});

test('no connection is left over', () =>
  until(async () => (await openConnections(target.api)) <= 3, 'all others are closed', 5_000));
