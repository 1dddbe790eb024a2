import { gzipSync } from 'node:zlib';
import {
  type RequestParts,
  expectBad,
  expectLimits,
  expectRefusal,
  hostileTarget,
  LISTENERS,
  titled,
} from './raw';

const target = hostileTarget();

describe.each(LISTENERS)('on the %s listener', (listener) => {
  const post = (headers: string[], parts: RequestParts = {}) => target.send({ ...parts, headers }, listener);

  test.each(
    titled([
      'gzip',
      'br',
      'x',
      '',
      ' ',
      'gzip, identity',
      'identity, gzip',
      'identity;q=1',
      'gzip'.repeat(2_000),
    ]),
  )('%j is refused, and the message says why', async (_title, value) => {
    const answer = await post([`Content-Encoding: ${value}`]);
    expectBad(answer);
    expect(answer?.body.error.message).toContain('Content-Encoding');
    if (listener === 'public') expectLimits(answer);
  });

  test('a body that is compressed indeed is refused, chunked or not', async () => {
    const zipped = gzipSync(target.requests[listener].body);
    expectBad(await post(['Content-Encoding: gzip'], { body: zipped }));
    const chunks = Buffer.concat([
      Buffer.from(`${zipped.length.toString(16)}\r\n`),
      zipped,
      Buffer.from('\r\n0\r\n\r\n'),
    ]);
    const headers = ['Content-Encoding: gzip', 'Transfer-Encoding: chunked'];
    expectBad(await post(headers, { body: chunks, without: ['content-length'] }));
  });

  test('two headers count as a list', async () => {
    expectBad(await post(['Content-Encoding: identity', 'Content-Encoding: gzip']));
  });

  test.each(['identity', 'Identity', 'IDENTITY', '  identity  '])('%j is no encoding', async (value) => {
    expect(await post([`Content-Encoding: ${value}`])).toMatchObject({ status: 200 });
  });

  test('the key is judged before it', async () => {
    expectRefusal(
      await post(['Content-Encoding: gzip'], { without: ['authorization'] }),
      401,
      'UNAUTHENTICATED',
    );
  });
});

test('where there is no body it says nothing', async () => {
  const parts = { line: 'POST /v1/notifications/test HTTP/1.1', headers: ['Content-Encoding: gzip'] };
  for (const without of [['content-type', 'content-length'], []])
    expectRefusal(await target.send({ ...parts, body: '', without }), 409, 'WEBHOOK_NOT_REGISTERED');
  const some = await target.send({ ...parts, body: 'x' });
  expect(some?.body.error.message).toContain('Content-Encoding');
});
