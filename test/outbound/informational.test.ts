import type { TLSSocket } from 'node:tls';
import { answering, closeAll, eventually, post, rawServed, served } from './partner';

afterEach(closeAll);

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const hints = (times: number, bytes = 10) =>
  `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(bytes)}\r\n\r\n`.repeat(times);

async function sendTo(onData: (socket: TLSSocket) => void) {
  const { receiver, sender } = await rawServed(onData);
  return { receiver, sender, result: await sender.send(post(receiver.url)) };
}

/** Writes the same for ever, as fast as it is taken. */
const flooding = (text: string) => {
  const chunk = text.repeat(Math.ceil(65_536 / text.length));
  return (socket: TLSSocket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    more();
  };
};

it.each([1, 19, 20])('%d informational answers before the final one are passed over', async (times) => {
  const { result } = await sendTo(answering(hints(times) + OK));
  expect(result).toMatchObject({ outcome: { kind: 'delivered', httpStatus: 200 }, answer: 'ok' });
});

it.each([
  ['more than 20 of them', hints(21)],
  ['16 KiB of them together', hints(9, 2_000)],
  ['16 KiB of one alone', hints(1, 17_000)],
])('%s before the final answer are a failure', async (_name, before) => {
  const { result } = await sendTo(answering(before + OK));
  expect(result).toMatchObject({
    outcome: { kind: 'failed', failure: 'protocol', httpStatus: null },
    answer: null,
  });
});

test('just under 16 KiB of them are not', async () => {
  const { result } = await sendTo(answering(hints(8, 2_000) + OK));
  expect(result.outcome).toMatchObject({ kind: 'delivered', httpStatus: 200 });
});

it.each([
  ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['103', hints(1)],
  ['blanks within a header', ' '],
])('an endless flood of %s ends the attempt at once', async (name, text) => {
  const begin = name === '100' || name === '102' || name === '103' ? '' : 'HTTP/1.1 200 OK\r\nX-Y:';
  const flood = flooding(text);
  const { result, receiver } = await sendTo((socket) => {
    socket.write(begin);
    flood(socket);
  });
  expect(result.outcome).toMatchObject({ kind: 'failed', failure: 'protocol', httpStatus: null });
  await eventually(() => receiver.open(), 0);
});

test('what an endpoint sends on a connection that has nothing to do ends that connection', async () => {
  let sent = 0;
  const chunk = Buffer.alloc(16_384, 'x');
  const { receiver, sender } = await served((_request, response) => {
    const { socket } = response;
    response.end('thank you', () => {
      const more = () => {
        while (socket !== null && !socket.destroyed && socket.write(chunk)) sent += chunk.length;
      };
      socket?.on('drain', more).on('error', () => {});
      setTimeout(more, 50);
    });
  });
  const { outcome } = await sender.send(post(receiver.url));
  expect(outcome.kind).toBe('delivered');
  await eventually(() => receiver.open(), 0);
  expect(sent).toBeLessThan(50_000_000);
});
