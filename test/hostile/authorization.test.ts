import { expectBad, expectRefusal, hostileTarget, LISTENERS, type GoodRequest } from './raw';

/** Everything an Authorization header can hold. */

const target = hostileTarget();
afterAll(() => {
  // Whatever was tried: no key is in the log.
  for (const { key } of Object.values(target.requests))
    expect(target.api.logs.join('')).not.toContain(key.slice(8));
});

describe.each(LISTENERS)('on the %s listener', (listener) => {
  const good = (): GoodRequest => target.requests[listener];

  /** `KEY` stands for the valid key. */
  const send = (...lines: string[]) => {
    const headers = lines.map((line) => line.replaceAll('KEY', good().key));
    return target.send({ without: ['authorization'], headers }, listener);
  };

  test.each([
    ['the scheme in lower case', 'Authorization: bearer KEY'],
    ['the scheme in upper case', 'AUTHORIZATION: BEARER KEY'],
    ['several spaces', 'authorization: Bearer    KEY'],
    ['white space around it', 'Authorization: \t Bearer KEY \t '],
    ['no space after the colon', 'Authorization:Bearer KEY'],
  ])('%s is accepted', async (_what, line) => {
    expect(await send(line)).toMatchObject({ status: 200 });
  });

  test.each<[string, ...string[]]>([
    ['none'],
    ['an empty one', 'Authorization:'],
    ['the scheme alone', 'Authorization: Bearer'],
    ['a key alone', 'Authorization: KEY'],
    ['a tab after the scheme', 'Authorization: Bearer\tKEY'],
    ['no space', 'Authorization: BearerKEY'],
    ['quotes', 'Authorization: Bearer "KEY"'],
    ['two keys', 'Authorization: Bearer KEY KEY'],
    ['another scheme', 'Authorization: Basic KEY'],
    ['bytes past ASCII', 'Authorization: Bearer KEY\u00ff'],
    ['one character more', 'Authorization: Bearer KEYx'],
    ['15 kB of it', `Authorization: Bearer ${'x'.repeat(15_000)}`],
    ['a key of the right form', `Authorization: Bearer sk_test_${'A'.repeat(32)}`],
    ['SQL', "Authorization: Bearer ' or 1=1; --"],
    ['a name of JavaScript', 'Authorization: Bearer __proto__'],
    ['two, both right', 'Authorization: Bearer KEY', 'Authorization: Bearer KEY'],
    ['two, the first right', 'Authorization: Bearer KEY', 'authorization: Bearer x'],
    ['two, the second right', 'Authorization: x', 'AUTHORIZATION: Bearer KEY'],
    ['two, one empty', 'Authorization: Bearer KEY', 'Authorization:'],
    ['a neighbour', 'Proxy-Authorization: Bearer KEY', 'X-Api-Key: KEY', 'Cookie: key=KEY'],
  ])('%s is 401, with a challenge', async (_what, ...lines) => {
    const answer = await send(...lines);
    expectRefusal(answer, 401, 'UNAUTHENTICATED');
    expect(answer?.headers['www-authenticate']).toBe('Bearer');
  });

  test('a key in the query or the body is no key', async () => {
    const path = good().line.replace(' HTTP/1.1', '');
    for (const name of ['access_token=', 'Authorization=Bearer%20']) {
      const line = `${path}?${name}${good().key} HTTP/1.1`;
      const answer = await target.send({ line, without: ['authorization'] }, listener);
      expectRefusal(answer, 401, 'UNAUTHENTICATED');
    }
  });

  test.each([
    ['1 MB', `Authorization: Bearer ${'x'.repeat(1_000_000)}`],
    ['a NUL', 'Authorization: Bearer KEY\0'],
    ['a fold', 'Authorization: Bearer\r\n KEY'],
    ['a line feed', 'Authorization: Bearer\nKEY'],
    ['a space before the colon', 'Authorization : Bearer KEY'],
  ])('%s is not HTTP as we read it: 400', async (_what, line) => {
    expectBad(await send(line));
  });

  test('every refusal of a well-formed key reads the same', async () => {
    const flipped = good().key.slice(0, -1) + (good().key.endsWith('A') ? 'B' : 'A');
    const texts = new Set<string | undefined>();
    for (const key of [flipped, good().key.toLowerCase(), good().key.slice(0, -1), 'x'.repeat(128)])
      texts.add((await send(`Authorization: Bearer ${key}`))?.text);
    expect(texts.size).toBe(1);
  });
});
