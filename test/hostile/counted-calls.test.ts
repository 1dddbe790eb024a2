import type { Socket } from 'node:net';
import { useApi } from '../support/api';
import {
  exchange,
  expectBad,
  expectLimits,
  expectRefusal,
  pause,
  quoteBytes,
  type RequestParts,
} from './raw';

/** A key that was accepted has been counted, and every answer says so, whatever was wrong with the rest. */

const api = useApi({ environment: { RATE_LIMIT_PER_MINUTE: '100' } });

const chunked = (body: string, headers: string[] = []): RequestParts => ({
  without: ['content-length'],
  headers: ['Transfer-Encoding: chunked', 'X-Request-Id: mine', ...headers],
  body,
});
const ended = (parts: RequestParts) => (socket: Socket) => void socket.end(quoteBytes(api, parts));
const sent = (parts: RequestParts) => (socket: Socket) => socket.write(quoteBytes(api, parts));
const large: RequestParts = { headers: ['X-Request-Id: mine'], body: ' '.repeat(20_000) };
const inParts = (parts: RequestParts, rest: string) => async (socket: Socket) => {
  socket.write(quoteBytes(api, parts));
  await pause(200);
  socket.write(rest);
};

const FAULTS: [what: string, drive: (socket: Socket) => unknown][] = [
  ['is of wrong framing from its start', sent(chunked('xyz\r\n'))],
  ['is of wrong framing further on', inParts(chunked('2\r\n{}\r\n'), 'xyz\r\n')],
  ['breaks off with the head', ended(chunked(''))],
  ['breaks off later', ended(chunked('2\r\n{}\r\n'))],
  ['is too large', sent(large)],
  ['is too large in chunks', sent(chunked(`4e20\r\n${' '.repeat(20_000)}\r\n`))],
  ['is not JSON', sent(chunked('1\r\n{\r\n0\r\n\r\n'))],
  [
    'is of another type',
    sent({
      ...chunked('0\r\n\r\n', ['Content-Type: text/plain']),
      without: ['content-type', 'content-length'],
    }),
  ],
];

test.each(FAULTS)('a body that %s', async (_what, drive) => {
  const before = await remaining();
  const { answers } = await exchange(api, '', { drive });
  expectBad(answers[0]);
  expect(answers[0]?.headers['x-request-id']).toBe('mine');
  expectLimits(answers[0]);
  expect(answers[0]?.headers['ratelimit-remaining']).toBe(String(before - 1));
});

async function remaining(): Promise<number> {
  return Number((await api.quote()).headers['ratelimit-remaining']);
}

test('the key is judged before the framing of the body, and the connection ends all the same', async () => {
  const bytes = quoteBytes(api, {
    ...chunked('xyz\r\n', ['Authorization: Bearer sk_test_00000000000000000000000000000000']),
    without: ['content-length', 'authorization'],
  });
  const { answers, closed } = await exchange(api, bytes, { untilClosed: true });
  expectRefusal(answers[0], 401, 'UNAUTHENTICATED');
  expect(answers[0]?.headers).not.toHaveProperty('ratelimit-limit');
  expect([answers.length, closed]).toEqual([1, true]);
});

test('a fault of ours', async () => {
  await api.database.sql`alter table quotes rename to quotes_away`;
  try {
    const { answers } = await exchange(api, quoteBytes(api));
    expectRefusal(answers[0], 500, 'INTERNAL_SERVER_ERROR');
    expectLimits(answers[0]);
  } finally {
    await api.database.sql`alter table quotes_away rename to quotes`;
  }
});

test('a call over the limit of its key, whatever its body, and no call of another key', async () => {
  let last = await api.quote();
  while (last.status === 200) last = await api.quote();
  expect(last.headers).toMatchObject({ 'ratelimit-policy': '100;w=60', 'ratelimit-remaining': '0' });
  const { 'retry-after': wait, 'ratelimit-reset': reset, 'x-ratelimit-reset': at } = last.headers;
  expect(wait).toBe(reset);
  expect(Number(wait)).toBeGreaterThanOrEqual(1);
  expect(Number(wait)).toBeLessThanOrEqual(60);
  expect(Math.abs(Number(at) - Date.now() / 1_000 - Number(reset))).toBeLessThan(2.5);
  expect(await api.quote({}, { key: api.keys.live })).toMatchObject({ status: 200 });
  expect(await api.quote({}, { key: null })).toMatchObject({ status: 401 });
  for (const parts of [chunked('xyz\r\n'), large, chunked('1\r\n{\r\n0\r\n\r\n')]) {
    const { answers } = await exchange(api, quoteBytes(api, parts));
    expectRefusal(answers[0], 429, 'RATE_LIMIT_EXCEEDED');
    expectLimits(answers[0]);
  }
});
