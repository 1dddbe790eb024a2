import {
  expectBad,
  expectRefusal,
  hostileTarget,
  LISTENERS,
  titled,
  expectLimits,
  type RequestParts,
} from './raw';
import { gzipSync } from 'node:zlib';

const target = hostileTarget();

const bad = JSON.stringify({ merchant_id: 'nonsense' });

describe.each(LISTENERS)('on the %s listener', (listener) => {
  /** Sends these header lines in place of the Content-Type. */
  const post = (headers: string[], body?: string) =>
    target.send({ without: ['content-type'], headers, ...(body && { body }) }, listener);

  const CHARSETS = ['application/json;charset=utf-8', 'application/json; charset="utf-8"'];
  const BLANKS = ['\tapplication/json', '  application/json  ', 'application/json;', 'application/json ;'];
  test.each([...CHARSETS, ...BLANKS, 'APPLICATION/JSON'])(
    '%p is JSON, and its body is checked',
    async (value) => {
      expect(await post([`Content-Type:${value}`])).toMatchObject({ status: 200 });
      expectRefusal(await post([`Content-Type:${value}`], bad), 400, 'MISSING_FIELD');
    },
  );

  const NO_TYPES = ['', ' ', 'json', '*/*'];
  const OTHERS = ['application/jsonx', 'application/vnd.api+json', 'text/json', 'text/plain'];
  const LISTS = [
    'text/plain; application/json',
    'application/json, text/plain',
    'text/plain, application/json',
  ];
  const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=application/json'];
  const MADE_UP = ['application\t/json', '"application/json"', 'application/json\u00a0', '__proto__'];
  test.each(
    titled([...NO_TYPES, ...OTHERS, ...LISTS, ...FORMS, ...MADE_UP, `application/json${'x'.repeat(8_000)}`]),
  )('%j is refused, and the message says why', async (_title, value) => {
    const answer = await post([`Content-Type: ${value}`]);
    expectBad(answer);
    expect(answer?.body.error.message).toContain('Content-Type');
  });

  test('none is refused, and so is a multipart body', async () => {
    expectBad(await post([]));
    const part = '--b\r\nContent-Disposition: form-data; name="merchant_id"\r\n\r\nM000001\r\n--b--\r\n';
    expectBad(await post(['Content-Type: multipart/form-data; boundary=b'], part));
  });

  test('another charset changes nothing: JSON is UTF-8', async () => {
    for (const charset of ['utf-16', 'iso-8859-1', 'utf-7', `"${'x'.repeat(4_000)}"`]) {
      const type = [`Content-Type: application/json; charset=${charset}`];
      expect(await post(type)).toMatchObject({ status: 200 });
      expectRefusal(await post(type, bad), 400, 'MISSING_FIELD');
    }
  });

  test('of two the first counts, and the body is checked all the same', async () => {
    const [json, text] = ['Content-Type: application/json', 'Content-Type: text/plain'];
    expect(await post([json, text])).toMatchObject({ status: 200 });
    expectRefusal(await post([json, text], bad), 400, 'MISSING_FIELD');
    expectBad(await post([text, json]));
  });

  const encode = (headers: string[], parts: RequestParts = {}) =>
    target.send({ ...parts, headers }, listener);

  const encodings = ['gzip', 'br', 'x', '', ' ', 'gzip, identity', 'identity, gzip', 'identity;q=1'];
  test.each(encodings)('%j is refused, and the message says why', async (value) => {
    const answer = await encode([`Content-Encoding: ${value}`]);
    expectBad(answer);
    expect(answer?.body.error.message).toContain('Content-Encoding');
    if (listener === 'public') expectLimits(answer);
  });

  test('a body that is compressed indeed is refused, chunked or not', async () => {
    const zipped = gzipSync(target.requests[listener].body);
    expectBad(await encode(['Content-Encoding: gzip'], { body: zipped }));
    const size = Buffer.from(`${zipped.length.toString(16)}\r\n`);
    const chunks = Buffer.concat([size, zipped, Buffer.from('\r\n0\r\n\r\n')]);
    const headers = ['Content-Encoding: gzip', 'Transfer-Encoding: chunked'];
    expectBad(await encode(headers, { body: chunks, without: ['content-length'] }));
  });

  test.each(['identity', 'Identity', 'IDENTITY', '  identity  '])('%j is no encoding', async (value) => {
    expect(await encode([`Content-Encoding: ${value}`])).toMatchObject({ status: 200 });
  });

  test('the key is judged before it', async () => {
    const unkeyed = await encode(['Content-Encoding: gzip'], { without: ['authorization'] });
    expectRefusal(unkeyed, 401, 'UNAUTHENTICATED');
  });
});

test('where there is no body they say nothing', async () => {
  const line = 'POST /v1/notifications/test HTTP/1.1';
  const headers = ['Content-Encoding: gzip'];
  for (const without of [['content-type', 'content-length'], []])
    expectRefusal(await target.send({ line, headers, body: '', without }), 409, 'WEBHOOK_NOT_REGISTERED');
  // As clients send it that take an empty type, or one of Accept.
  for (const type of ['', 'json', 'application/json, text/plain, */*']) {
    const parts = { line, headers: [`Content-Type: ${type}`], without: ['content-type'] };
    expectRefusal(await target.send({ ...parts, body: '' }), 409, 'WEBHOOK_NOT_REGISTERED');
    const refused = await target.send({ ...parts, body: '{}' });
    expect(refused?.body.error.message).toBe('The body must be empty.');
  }
  const some = await target.send({ line, headers, body: 'x' });
  expect(some?.body.error.message).toContain('Content-Encoding');
});
