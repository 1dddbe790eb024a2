import { once } from 'node:events';
import type { Socket } from 'node:net';
import { until } from '../../testbed/until';
import {
  exchange,
  expectBad,
  expectLimits,
  hostileTarget,
  openConnections,
  openTls,
  pause,
  quoteBytes,
  type Exchange,
} from './raw';

/**
 * Clients that dawdle or stop half-way (those that vanish: framing.test.ts). The limits are those of api/listener.ts:
 * 10 s for a request, looked at every 2 s. All cases wait at the same time.
 */
const PATIENCE_MS = 16_000;

const { api } = hostileTarget();

/** Writes a part each so many milliseconds until the connection ends. */
function drip(socket: Socket, everyMs: number, next: () => string | Buffer): void {
  const timer = setInterval(() => socket.write(next()), everyMs);
  socket.once('close', () => clearInterval(timer));
}

const wait = (drive: (socket: Socket) => void): Promise<Exchange> =>
  exchange(api, '', { untilClosed: true, patienceMs: PATIENCE_MS, drive });

const head = (...headers: string[]) => quoteBytes(api, { body: '', without: ['content-length'], headers });

test('what does not end within 10 s is refused or closed, and honest calls go on meanwhile', async () => {
  const announced = head('Content-Length: 200', 'X-Request-Id: mine');
  const slow = {
    'half a head': wait((socket) => socket.write('POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\nX-')),
    'a header line each second': wait((socket) => {
      socket.write('POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\n');
      drip(socket, 1_000, () => 'X-Slow: 1\r\n');
    }),
    'a byte of the body each second': wait((socket) => {
      socket.write(announced);
      drip(socket, 1_000, () => '{');
    }),
    'a body announced and not sent': wait((socket) => socket.write(announced)),
    'a chunk each second': wait((socket) => {
      socket.write(head('Transfer-Encoding: chunked', 'X-Request-Id: mine'));
      drip(socket, 1_000, () => '1\r\n \r\n');
    }),
    'a continuation asked for, and not used': wait((socket) =>
      socket.write(head('Content-Length: 200', 'Expect: 100-continue', 'X-Request-Id: mine')),
    ),
  };
  const second = wait((socket) => {
    socket.write(quoteBytes(api));
    setTimeout(() => socket.write('POST /v1/finance-quote HTTP/1.1\r\n'), 500);
  });
  const unused = wait(() => undefined);
  // It never begins TLS.
  const silent = { untilClosed: true, patienceMs: PATIENCE_MS, drive: () => undefined };
  const tcp = exchange({ port: api.port, ca: null }, '', silent);

  // 200 more of them, and honest calls between.
  const crowd = Array.from({ length: 200 }, () => openTls(api).resume());
  await Promise.all(crowd.map((socket) => once(socket, 'secureConnect')));
  for (const socket of crowd) socket.write(head('Content-Length: 200'));
  const tooks: number[] = [];
  for (let calls = 0; calls < 20; calls += 1) {
    const before = performance.now();
    expect(await api.quote()).toMatchObject({ status: 200 });
    tooks.push(performance.now() - before);
    await pause(100);
  }
  expect(Math.max(...tooks)).toBeLessThan(5_000);

  for (const [what, outcome] of Object.entries(slow)) {
    const { answers, closed, tookMs } = await outcome;
    expect([what, closed]).toEqual([what, true]);
    expect(tookMs).toBeGreaterThan(8_000);
    expect([what, answers.length]).toEqual([what, 1]);
    expectBad(answers[0]);
    // The head of these had arrived, with an id and a key in it: the call was counted.
    if (/body|chunk|continuation/.test(what)) {
      expect(answers[0]?.headers['x-request-id']).toBe('mine');
      expectLimits(answers[0]);
      expect(answers[0]?.body.error.message).toContain('within 10 seconds');
    }
  }
  const [first, refusal] = (await second).answers;
  expect(first).toMatchObject({ status: 200 });
  expectBad(refusal);
  expect(await unused).toMatchObject({ closed: true, answers: [] });
  expect(await tcp).toMatchObject({ closed: true, answers: [] });
  await until(() => crowd.every(({ closed }) => closed), 'the crowd is cut off', 5_000);
  // The honest client keeps its own.
  expect(await openConnections(api)).toBeLessThan(5);
});

test('who asks for pages and reads none of them is cut off; who reads slowly is not', async () => {
  const page = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n';
  const before = await openConnections(api);
  const idler = openTls(api).pause();
  const reader = openTls(api);
  let read = 0;
  // Some 300 KB a second: its share of the answers outlasts the test.
  reader.on('data', (chunk: Buffer) => {
    read += chunk.length;
    reader.pause();
    setTimeout(() => reader.resume(), 50);
  });
  await Promise.all([idler, reader].map((socket) => once(socket, 'secureConnect')));
  // More than the buffers of two sockets hold.
  for (const socket of [idler, reader]) socket.write(page.repeat(300));
  while ((await openConnections(api)) < before + 2) await pause(100);
  const startedAt = performance.now();
  while ((await openConnections(api)) > before + 1 && performance.now() - startedAt < 60_000)
    await pause(200);
  expect(performance.now() - startedAt).toBeGreaterThan(15_000);
  const soFar = read;
  while (read === soFar && !reader.closed) await pause(200);
  expect([await openConnections(api), reader.closed, read > soFar]).toEqual([before + 1, false, true]);
  for (const socket of [idler, reader]) socket.destroy();
});
