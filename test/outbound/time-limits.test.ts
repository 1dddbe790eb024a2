import { once } from 'node:events';
import { readFile } from 'node:fs';
import type { Socket } from 'node:net';
import { standStill, until } from '../../testbed/until';
import {
  closeAll,
  closeLater,
  dripping,
  sendOnce,
  HOST,
  post,
  startDeafServer,
  startRawReceiver,
  startTcpServer,
  testSender,
} from './partner';

afterEach(closeAll);

/** Limits so short that a test is, each told from the others by its length. Connecting is work, for a busy machine. */
const SHORT = { dnsMs: 2_000, connectMs: 2_000, headersMs: 400, bodyMs: 200, totalMs: 700 };
const CONNECT = { connectMs: 300 };
/** What a busy machine may add. */
const SLACK_MS = 10_000;

const sendTo = async (port: number, options: Parameters<typeof testSender>[0] = {}) => {
  const sender = await testSender({ ports: [port], timeouts: { ...SHORT, ...CONNECT }, ...options });
  const startedAt = performance.now();
  const result = await sender.send(post(`https://${HOST}:${port}/hook`));
  return { ...result, tookMs: performance.now() - startedAt };
};

function expectAbout(tookMs: number, limitMs: number): void {
  expect(tookMs).toBeGreaterThan(limitMs - 20);
  expect(tookMs).toBeLessThan(limitMs + SLACK_MS);
}

test.each([
  ['never answers', () => {}, SHORT],
  ['drips its headers', dripping('HTTP/1.1 200 OK\r\n', 'X: y\r\n', 20), SHORT],
  [
    'sends interim answers without end',
    dripping('', 'HTTP/1.1 102 Processing\r\n\r\n', 100),
    { ...SHORT, headersMs: 60_000 },
  ],
])(
  'a partner that %s is given up at the limit for headers or for the whole',
  async (_what, onData, timeouts) => {
    const { outcome, address, tookMs } = await sendOnce(onData, { timeouts });
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'timeout', httpStatus: null });
    expect(address).toBe('127.0.0.1');
    expectAbout(tookMs, Math.min(timeouts.headersMs, timeouts.totalMs));
  },
);

test('a body that drips is a success, decided at the headers; it is read for no longer than its limit', async () => {
  const drip = dripping('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', 'x', 20);
  const timeouts = { ...SHORT, totalMs: 20_000 };
  const { receiver, outcome, answer, tookMs } = await sendOnce(drip, { timeouts });
  expect(outcome).toMatchObject({ kind: 'delivered', httpStatus: 200 });
  expect(outcome.durationMs).toBeLessThan(tookMs - SHORT.bodyMs + 20);
  expect(answer).toMatch(/^x+$/);
  expectAbout(tookMs, SHORT.bodyMs);
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
});

test.each([
  ['answer', '', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ['rest of an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n', 'ok'],
])('the %s that came while this process stood still is heard', async (_what, first, then) => {
  const { outcome, answer } = await sendOnce(
    (socket) => {
      if (first !== '') socket.write(first);
      // In the phase of sockets: all limits are due next, and what has arrived is read after them.
      readFile(__filename, () => {
        socket.write(then);
        standStill(2 * SHORT.totalMs);
      });
    },
    { timeouts: SHORT },
  );
  expect(outcome).toMatchObject({ kind: 'delivered', httpStatus: 200 });
  expect(answer).toBe('ok');
});

test('a handshake that never comes is given up at the limit for connecting', async () => {
  const { server, port } = await startTcpServer();
  const closed = once(server, 'connection').then(([socket]) => once((socket as Socket).resume(), 'close'));
  const { outcome, tookMs } = await sendTo(port);
  await closed;
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'connect' });
  expectAbout(tookMs, CONNECT.connectMs);
});

test('a connection that never comes is given up at the limit for connecting', async () => {
  const { port } = closeLater(await startDeafServer());
  const { outcome, tookMs } = await sendTo(port);
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'connect' });
  expectAbout(tookMs, CONNECT.connectMs);
});

test('a refused connection fails at once', async () => {
  const receiver = await startRawReceiver(() => {});
  await receiver.close();
  const { outcome, detail, tookMs } = await sendTo(receiver.port);
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'connect', httpStatus: null });
  expect(detail).toBe('ECONNREFUSED');
  expect(tookMs).toBeLessThan(SLACK_MS);
});

test('a DNS that does not answer is given up at its limit', async () => {
  const { outcome, tookMs } = await sendTo(443, { dns: () => 'silence', timeouts: { ...SHORT, dnsMs: 250 } });
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'dns' });
  expectAbout(tookMs, 250);
});
