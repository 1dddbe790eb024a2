import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { Connection, exchange } from '../../outbound/exchange';
import { until } from '../../testbed/until';
import {
  authority,
  closeAll,
  closeLater,
  flood,
  HOST,
  post,
  sendOnce,
  served,
  startReceiver,
} from './partner';

afterEach(closeAll);

test('the partner gets the body byte for byte, our headers, and its own name', async () => {
  let received: unknown;
  const { receiver, sender } = await served((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers, httpVersion } = request;
      received = { method, url, httpVersion, headers, body: Buffer.concat(chunks).toString('utf8') };
      response.end('thank you');
    });
  });
  const result = await sender.send(post(receiver.url));
  expect(result).toMatchObject({
    outcome: { kind: 'delivered', httpStatus: 200 },
    answer: 'thank you',
    address: '127.0.0.1',
    detail: null,
    clockSkewMs: expect.any(Number),
  });
  expect(received).toMatchObject({
    method: 'POST',
    url: '/hook',
    httpVersion: '1.1',
    body: '{"amount":"£5"}',
    headers: {
      host: `${HOST}:${receiver.port}`,
      'webhook-id': 'evt_1',
      'content-type': 'application/json; charset=utf-8',
      'content-length': '16',
      // Firewalls ask for it.
      accept: '*/*',
      'accept-encoding': 'identity',
    },
  });
  expect(result.outcome.durationMs).toBeGreaterThan(0);
});

test('the usual port is not part of Host, which Envoy compares with its domains as it is', async () => {
  let host: string | undefined;
  const receiver = closeLater(
    await startReceiver(({ headers }, response) => {
      ({ host } = headers);
      response.end();
    }),
  );
  const at = { host: '127.0.0.1', port: receiver.port, servername: HOST, ca: (await authority).cert };
  const connection = new Connection(connect(at), receiver.url, () => undefined);
  const request = { path: '/hook', headers: {}, body: Buffer.from('{}'), headersMs: 5_000, keep: false };
  const { signal } = new AbortController();
  await exchange(connection, { ...request, hostname: HOST, port: 443 }, signal);
  expect(host).toBe(HOST);
});

it.each([301, 302, 303, 307, 308])('%d is not followed, wherever it leads', async (status) => {
  const elsewhere = closeLater(await startReceiver((_request, response) => response.end()));
  for (const location of [elsewhere.url, 'https://169.254.169.254/latest/meta-data/', '/other']) {
    const answer = `HTTP/1.1 ${status} X\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`;
    const { outcome, receiver, ...result } = await sendOnce(answer);
    expect(result.answer).toBe(`Location: ${location}\n\n`);
    expect(outcome).toMatchObject({ kind: 'failed', failure: 'redirect', httpStatus: status });
    expect(receiver.connections()).toBe(1);
  }
  expect(elsewhere.connections()).toBe(0);
});

it.each([
  ['Sat, 21 Nov 2026 12:00:00 GMT', 600_000],
  ['Sat, 21 Nov 2026 12:20:00 GMT', -600_000],
  ['yesterday', null],
])('the Date of an answer, %s, tells how far our clock is ahead: %s ms', async (date, clockSkewMs) => {
  for (const status of [200, 401]) {
    const answer = `HTTP/1.1 ${status} X\r\nDate: ${date}\r\nContent-Length: 0\r\n\r\n`;
    const now = () => Date.UTC(2026, 10, 21, 12, 10, 0);
    expect(await sendOnce(answer, { now })).toMatchObject({ clockSkewMs });
  }
});

test('an endless body is a success, of which 8 KiB are kept and little more is read', async () => {
  let written = () => 0;
  const { receiver, sender } = await served((_request, response) => {
    written = flood(response, 'x'.repeat(16_384));
  });
  const startedAt = performance.now();
  const result = await sender.send(post(receiver.url));
  // Ended by its size, long before the time for a body.
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  expect(result.outcome).toMatchObject({ kind: 'delivered', httpStatus: 200 });
  expect(result.answer).toBe('x'.repeat(8_192));
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
  // What fits into the buffers of the two sockets, far from endless.
  expect(written()).toBeLessThan(16_000_000);
});

test('a compressed answer is never unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const { receiver, sender } = await served((_request, response) => {
    response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': bomb.length }).end(bomb);
  });
  const before = process.memoryUsage().rss;
  const result = await sender.send(post(receiver.url));
  expect(result.outcome).toMatchObject({ kind: 'delivered', httpStatus: 200 });
  expect(result.answer).toBe('(compressed, though identity was asked for)');
  expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
});

test('what is kept is text that can be stored: no NUL, no half character', async () => {
  const body = `\0${'é'.repeat(5_000)}`;
  const { receiver, sender } = await served((_request, response) => response.end(body));
  const { answer } = await sender.send(post(receiver.url));
  expect(answer).toBe(`\uFFFD${'é'.repeat(4_095)}`);
});

test('a header that cannot be sent is our fault, and is thrown', async () => {
  const { receiver, sender } = await served((_request, response) => response.end());
  const input = { ...post(receiver.url), headers: { 'webhook-id': 'a\r\nb' } };
  await expect(sender.send(input)).rejects.toThrow('Invalid character in header');
  expect(receiver.connections()).toBe(0);
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const hints = (times: number, bytes = 10) =>
  `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(bytes)}\r\n\r\n`.repeat(times);

it.each([
  ['one', hints(1)],
  ['20', hints(20)],
  ['just under 16 KiB', hints(8, 2_000)],
])('%s of informational answers before the final one are passed over', async (_name, before) => {
  const result = await sendOnce(before + OK);
  expect(result).toMatchObject({ outcome: { kind: 'delivered', httpStatus: 200 }, answer: 'ok' });
});

it.each([
  ['more than 20 of them', hints(21)],
  ['16 KiB of them together', hints(9, 2_000)],
  ['16 KiB of one alone', hints(1, 17_000)],
])('%s before the final answer are a failure', async (_name, before) => {
  const outcome = { kind: 'failed', failure: 'protocol', httpStatus: null };
  expect(await sendOnce(before + OK)).toMatchObject({ outcome, answer: null });
});

it.each([
  ['100', '', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['102', '', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['103', '', hints(1)],
  ['blanks within a header', 'HTTP/1.1 200 OK\r\nX-Y:', ' '],
])('an endless flood of %s ends the attempt at once', async (_name, begin, text) => {
  const { outcome, receiver } = await sendOnce((socket) => {
    socket.write(begin);
    flood(socket, text.repeat(Math.ceil(65_536 / text.length)));
  });
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'protocol', httpStatus: null });
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
});

test('what an endpoint sends on a connection that has nothing to do ends that connection', async () => {
  let sent = () => 0;
  const { receiver, sender } = await served((_request, response) => {
    const { socket } = response;
    response.end('thank you', () =>
      setTimeout(() => (sent = flood(socket as Socket, 'x'.repeat(16_384))), 50),
    );
  });
  const { outcome } = await sender.send(post(receiver.url));
  expect(outcome.kind).toBe('delivered');
  await until(() => receiver.open() === 0, 'its connection is closed', 5_000);
  expect(sent()).toBeLessThan(50_000_000);
});
