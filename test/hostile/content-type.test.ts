import { expectBad, expectRefusal, hostileTarget, LISTENERS, titled } from './raw';

const target = hostileTarget();

const bad = JSON.stringify({ merchant_id: 'nonsense' });

describe.each(LISTENERS)('on the %s listener', (listener) => {
  /** Sends these header lines in place of the Content-Type. */
  const post = (headers: string[], body?: string) =>
    target.send({ without: ['content-type'], headers, ...(body && { body }) }, listener);

  test.each([
    ['application/json'],
    ['application/json;'],
    ['application/json ;'],
    ['application/json;charset=utf-8'],
    ['application/json; charset="utf-8"'],
    ['APPLICATION/JSON'],
    ['   application/json'],
    ['application/json   '],
    ['\tapplication/json'],
  ])('%p is JSON, and its body is checked', async (value) => {
    expect(await post([`Content-Type:${value}`])).toMatchObject({ status: 200 });
    expectRefusal(await post([`Content-Type:${value}`], bad), 400, 'MISSING_FIELD');
  });

  test.each(
    titled([
      '',
      ' ',
      'json',
      'application/jsonx',
      'application/vnd.api+json',
      'text/json',
      'text/plain',
      'text/plain; application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=application/json',
      'application/json, text/plain',
      'text/plain, application/json',
      'application\t/json',
      '"application/json"',
      'application/json\u00a0',
      '*/*',
      '__proto__',
      `application/json${'x'.repeat(8_000)}`,
    ]),
  )('%j is refused', async (_title, value) => {
    expectBad(await post([`Content-Type: ${value}`]));
  });

  test('none is refused', async () => {
    expectBad(await post([]));
  });

  test('another charset changes nothing: JSON is UTF-8', async () => {
    for (const charset of ['utf-16', 'iso-8859-1', 'utf-7', `"${'x'.repeat(4_000)}"`]) {
      expect(await post([`Content-Type: application/json; charset=${charset}`])).toMatchObject({
        status: 200,
      });
      expectRefusal(
        await post([`Content-Type: application/json; charset=${charset}`], bad),
        400,
        'MISSING_FIELD',
      );
    }
  });

  test('of two the first counts, and the body is checked all the same', async () => {
    const [json, text] = ['Content-Type: application/json', 'Content-Type: text/plain'];
    expect(await post([json, text])).toMatchObject({ status: 200 });
    expectRefusal(await post([json, text], bad), 400, 'MISSING_FIELD');
    expectBad(await post([text, json]));
  });

  test('a multipart body is refused', async () => {
    const part = '--b\r\nContent-Disposition: form-data; name="merchant_id"\r\n\r\nM000001\r\n--b--\r\n';
    expectBad(await post(['Content-Type: multipart/form-data; boundary=b'], part));
  });
});
