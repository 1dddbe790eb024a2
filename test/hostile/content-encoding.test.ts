import { gzipSync } from 'node:zlib';
import { exchange, expectLimits, expectRefusal, hostileTarget, LISTENERS, requestBytes, titled } from './raw';

const target = hostileTarget();

describe.each(LISTENERS)('on the %s listener', (listener) => {
  async function post(
    lines: string[],
    parts: { body?: string | Buffer; without?: string[]; line?: string } = {},
  ) {
    const good = target.requests[listener];
    return (await exchange(good, requestBytes(good, { ...parts, headers: lines }))).answers[0];
  }

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
    expectRefusal(answer, 400, 'INVALID_REQUEST');
    expect(answer?.body.error.message).toContain('Content-Encoding');
    if (listener === 'public') expectLimits(answer);
  });

  test('a body that is compressed indeed is refused, chunked or not', async () => {
    const zipped = gzipSync(target.requests[listener].body);
    expectRefusal(await post(['Content-Encoding: gzip'], { body: zipped }), 400, 'INVALID_REQUEST');
    const chunks = Buffer.concat([
      Buffer.from(`${zipped.length.toString(16)}\r\n`),
      zipped,
      Buffer.from('\r\n0\r\n\r\n'),
    ]);
    const answer = await post(['Content-Encoding: gzip', 'Transfer-Encoding: chunked'], {
      body: chunks,
      without: ['content-length'],
    });
    expectRefusal(answer, 400, 'INVALID_REQUEST');
  });

  test('two headers count as a list', async () => {
    expectRefusal(
      await post(['Content-Encoding: identity', 'Content-Encoding: gzip']),
      400,
      'INVALID_REQUEST',
    );
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
  const good = target.requests.public;
  const parts = { line: 'POST /v1/notifications/test HTTP/1.1', headers: ['Content-Encoding: gzip'] };
  const none = await exchange(
    good,
    requestBytes(good, { ...parts, body: '', without: ['content-type', 'content-length'] }),
  );
  expectRefusal(none.answers[0], 409, 'WEBHOOK_NOT_REGISTERED');
  const empty = await exchange(good, requestBytes(good, { ...parts, body: '' }));
  expectRefusal(empty.answers[0], 409, 'WEBHOOK_NOT_REGISTERED');
  const some = await exchange(good, requestBytes(good, { ...parts, body: 'x' }));
  expect(some.answers[0]?.body.error.message).toContain('Content-Encoding');
});
