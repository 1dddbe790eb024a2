import {
  exchange,
  expectBad,
  expectRefusal,
  type GoodRequest,
  hostileTarget,
  LISTENERS,
  requestBytes,
  type RequestParts,
  titled,
} from './raw';

/** Header bombs, line breaks in a request id, request ids of 10 kB. */

const target = hostileTarget();

afterAll(() => {
  // Whatever was tried: no key is in the log.
  for (const { key } of Object.values(target.requests))
    expect(target.api.logs.join('')).not.toContain(key.slice(8));
});

const OURS = /^rq_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe.each(LISTENERS)('on the %s listener', (listener) => {
  const good = (): GoodRequest => target.requests[listener];

  const send = (parts: RequestParts) => target.send(parts, listener);

  describe('request ids', () => {
    test.each([
      ['10 kB', 'x'.repeat(10_000)],
      ['129 characters', 'x'.repeat(129)],
      ['a NUL escaped', '%00%0d%0a'.padEnd(200, '%')],
      ['spaces', 'a b'],
      ['a tab', 'a\tb'],
      ['UTF-8', Buffer.from('\u{1f600}').toString('latin1')],
      ['nothing', ''],
    ])('of %s is replaced, and the request served', async (_what, id) => {
      for (const name of ['X-Request-Id', 'x-correlation-id']) {
        const answer = await send({ headers: [`${name}: ${id}`] });
        expect(answer?.status).toBe(200);
        expect(answer?.headers['x-request-id']).toMatch(OURS);
      }
    });

    test.each([
      ['abc-123~!', ['X-Request-Id: abc-123~!']],
      ['abc-123~!', ['X-Correlation-Id: abc-123~!']],
      ['first', ['X-Request-Id: first', 'X-Correlation-Id: second']],
      // An id that cannot be used does not hide the other.
      ['good', ['X-Request-Id: a b', 'X-Correlation-Id: good']],
    ])('it is %s for %j', async (id, headers) => {
      expect((await send({ headers }))?.headers['x-request-id']).toBe(id);
    });

    test('two are none: which one counts must not be a guess', async () => {
      const answer = await send({ headers: ['X-Request-Id: one', 'X-Request-Id: two'] });
      expect(answer).toMatchObject({ status: 200 });
      expect(answer?.headers['x-request-id']).toMatch(OURS);
    });

    test('a line break ends one: what follows is a header of the request, and none of the answer', async () => {
      const answer = await send({ headers: ['X-Request-Id: mine\r\nSet-Cookie: a=b\r\nX-Evil: 1'] });
      expect(answer).toMatchObject({ status: 200, headers: { 'x-request-id': 'mine' } });
      expect(answer?.headers).not.toHaveProperty('set-cookie');
      expect(answer?.headers).not.toHaveProperty('x-evil');
    });

    test.each([
      ['a line feed', 'a\nSet-Cookie: a=b'],
      ['a carriage return', 'a\rSet-Cookie: a=b'],
      ['a fold', 'a\r\n Set-Cookie: a=b'],
      ['a NUL', 'a\0b'],
      ['DEL', 'a\x7fb'],
    ])('with %s in it never put a header into the answer', async (_what, id) => {
      for (const name of ['X-Request-Id', 'X-Correlation-Id']) {
        const answer = await send({ headers: [`${name}: ${id}`] });
        expect(answer?.headers).not.toHaveProperty('set-cookie');
        expectBad(answer);
        expect(answer?.headers['x-request-id']).toMatch(OURS);
      }
    });
  });

  describe('header bombs', () => {
    test.each<[string, string[]]>([
      ['one of 17 kB', [`X-Big: ${'x'.repeat(17_000)}`]],
      ['one of 1 MB', [`X-Big: ${'x'.repeat(1_000_000)}`]],
      ['a name of 20 kB', [`${'x'.repeat(20_000)}: 1`]],
      ['200 of 100 bytes', Array.from({ length: 200 }, (_, at) => `X-Bomb-${at}: ${'x'.repeat(100)}`)],
      ['100,000 tiny ones', Array.from({ length: 100_000 }, () => 'a:b')],
    ])('%s: 400 in the form of the contract, and the connection ends', async (_what, headers) => {
      const bytes = requestBytes(good(), { headers });
      const { answers, closed } = await exchange(good(), bytes, { untilClosed: true });
      expectBad(answers[0]);
      expect(answers[0]?.headers['x-request-id']).toMatch(OURS);
      expect(answers).toHaveLength(1);
      expect(closed).toBe(true);
    });

    test('2,500 tiny headers are read to the last one', async () => {
      const tiny = Array.from({ length: 2_500 }, () => 'a:b');
      const late = `Authorization: Bearer ${good().key}`;
      const headers = [...tiny, late, 'X-Request-Id: last'];
      const answer = await send({ without: ['authorization'], headers });
      expect(answer).toMatchObject({ status: 200, headers: { 'x-request-id': 'last' } });
      expectRefusal(await send({ headers: [...tiny, late] }), 401, 'UNAUTHENTICATED');
    });

    test('a head without end is refused once it is too long', async () => {
      const { answers, closed } = await exchange(good(), '', {
        untilClosed: true,
        drive: (socket) => {
          socket.write(`${good().line}\r\nHost: a\r\n`);
          const feed = setInterval(() => socket.write(`X-More: ${'x'.repeat(1_000)}\r\n`), 5);
          socket.once('close', () => clearInterval(feed));
        },
      });
      expectBad(answers[0]);
      expect(closed).toBe(true);
    });
  });

  describe('headers that are not HTTP', () => {
    test.each(['no-colon', 'Bad Name: 1', 'B\u00e4d: 1', 'Bad\0: 1', 'X-Value: a\0b', '{"json":1}: 1'])(
      '%j is refused',
      async (line) => {
        expectBad(await send({ headers: [line] }));
      },
    );

    test.each([
      'X-Value: \u00ff\u0080',
      '__proto__: x',
      'Cookie: __proto__=1; a=%00',
      "X-Forwarded-For: '; drop table quotes; --",
      'X-HTTP-Method-Override: DELETE',
      'Accept-Encoding: gzip, br;q=x',
      'Range: bytes=0-1',
      'Upgrade: websocket\r\nConnection: Upgrade',
      'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAA',
      'Expect: 100-continue',
      'Expect: 200-ok',
    ])('%j changes nothing', async (line) => {
      const answer = await send({ headers: [line] });
      expect(answer).toMatchObject({ status: 200, body: { success: true } });
      expect(answer?.headers['content-type']).toBe('application/json; charset=utf-8');
    });

    test.each(titled(['', '\u00e4', 'a b', '[::1', 'a'.repeat(10_000)]))(
      'a Host of %j is served or refused in the form of the contract, and never answered with',
      async (_title, host) => {
        const answer = await send({ without: ['host'], headers: [`Host: ${host}`] });
        expect([200, 400]).toContain(answer?.status);
        if (answer?.status === 400) expectBad(answer);
      },
    );

    test.each([
      ['two of them', 'Host: evil.example'],
      ['the same twice', 'host: 127.0.0.1'],
      ['an empty second one', 'HOST:'],
    ])('%s as Host are refused: which one counts must not be a guess', async (_what, second) => {
      for (const version of ['1.1', '1.0']) {
        const line = good().line.replace('HTTP/1.1', `HTTP/${version}`);
        const answer = await send({ line, headers: [second] });
        expectBad(answer);
        expect(answer?.body.error.message).toBe('The Host header is sent twice.');
      }
    });

    test('none is refused in HTTP/1.1', async () => {
      expectBad(await send({ without: ['host'] }));
    });
  });

  describe('Authorization', () => {
    /** `KEY` stands for the valid key. */
    const authorized = (...lines: string[]) =>
      send({ without: ['authorization'], headers: lines.map((line) => line.replaceAll('KEY', good().key)) });

    test.each([
      ['the scheme in lower case', 'Authorization: bearer KEY'],
      ['the scheme in upper case', 'AUTHORIZATION: BEARER KEY'],
      ['several spaces', 'authorization: Bearer    KEY'],
      ['white space around it', 'Authorization: \t Bearer KEY \t '],
      ['no space after the colon', 'Authorization:Bearer KEY'],
    ])('%s is accepted', async (_what, line) => {
      expect(await authorized(line)).toMatchObject({ status: 200 });
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
      const answer = await authorized(...lines);
      expectRefusal(answer, 401, 'UNAUTHENTICATED');
      expect(answer?.headers['www-authenticate']).toBe('Bearer');
    });

    test('a key in the query or the body is no key', async () => {
      const path = good().line.replace(' HTTP/1.1', '');
      for (const name of ['access_token=', 'Authorization=Bearer%20']) {
        const line = `${path}?${name}${good().key} HTTP/1.1`;
        const answer = await send({ line, without: ['authorization'] });
        expectRefusal(answer, 401, 'UNAUTHENTICATED');
      }
    });

    const LINE_BREAK = 'a line break in it, such as one at the end of your key';
    test.each([
      ['1 MB', `Authorization: Bearer ${'x'.repeat(1_000_000)}`, 'larger than 16 KiB'],
      ['a NUL', 'Authorization: Bearer KEY\0', 'not valid HTTP'],
      ['a fold', 'Authorization: Bearer\r\n KEY', LINE_BREAK],
      ['a line feed', 'Authorization: Bearer\nKEY', LINE_BREAK],
      ['a line feed at the end', 'Authorization: Bearer KEY\n', LINE_BREAK],
      ['a space before the colon', 'Authorization : Bearer KEY', 'not valid HTTP'],
    ])('%s is not HTTP as we read it: 400', async (_what, line, message) => {
      const answer = await authorized(line);
      expectBad(answer);
      expect(answer?.body.error.message).toContain(message);
    });

    test('every refusal of a well-formed key reads the same', async () => {
      const flipped = good().key.slice(0, -1) + (good().key.endsWith('A') ? 'B' : 'A');
      const texts = new Set<string | undefined>();
      for (const key of [flipped, good().key.toLowerCase(), good().key.slice(0, -1), 'x'.repeat(128)])
        texts.add((await authorized(`Authorization: Bearer ${key}`))?.text);
      expect(texts.size).toBe(1);
    });
  });
});
