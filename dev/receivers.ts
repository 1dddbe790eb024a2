import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';

/**
 * Receivers as they are found outside: what each writes on its connection, and how an attempt has to end.
 * Tests of the sender and of deliveries, the crash run and the demo shop share them.
 */

/** One request that has come in whole, and the connection that it came on. */
export interface Wire {
  readonly socket: TLSSocket;
  /** Which request of its connection it is, from 1. */
  readonly nth: number;
  /** Writes on the TCP connection beneath TLS. */
  beneath(bytes: Buffer): void;
  /** Ends the TCP connection with a reset. */
  reset(): void;
}

/** How an attempt ends: the status of the receiver's answer, or the failure, with its reason in our words. */
export type Ending = number | 'reset' | `protocol ${string}`;

export interface Receiver {
  readonly does: string;
  /** Answers a request. @returns the status that is its answer; null: none */
  readonly answer: (wire: Wire) => number | null;
  /** The ends of two attempts, the second after the connection of the first has rested. */
  readonly ends: readonly [Ending, Ending];
  /** Connections that the two attempts take. */
  readonly connections: 1 | 2;
  /** It sends bytes that belong to no request. */
  readonly surplus?: true;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ERROR = 'HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n';
const hints = (times: number) => 'HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n'.repeat(times);
const head = (...lines: readonly string[]) => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n');

type Does = Receiver['answer'];

/** Writes these bytes, whose first status is the answer. */
const writes =
  (bytes: string | Buffer, status = 200): Does =>
  ({ socket }) => {
    socket.write(bytes);
    return status;
  };

/** The same, and something else after so many milliseconds. */
const thenAfter =
  (ms: number, first: string, then: (wire: Wire) => void, status = 200): Does =>
  (wire) => {
    wire.socket.write(first, () => setTimeout(() => wire.socket.writable && then(wire), ms));
    return status;
  };

/** 200 to the first request of a connection, and this to later ones. */
const later =
  (does: Does): Does =>
  (wire) =>
    wire.nth === 1 ? writes(OK)(wire) : does(wire);

/** Answers the first request of a connection twice, so many milliseconds apart, and later ones with 500. */
const twice =
  (ms: number): Does =>
  (wire) =>
    wire.nth === 1 ? thenAfter(ms, OK, ({ socket }) => socket.write(OK))(wire) : writes(ERROR, 500)(wire);

const drips = (bytes: string, everyMs: number): Does => {
  return ({ socket }) => {
    let at = 0;
    const drip = setInterval(
      () => (socket.write(bytes[at] ?? ''), (at += 1) >= bytes.length && clearInterval(drip)),
      everyMs,
    );
    socket.once('close', () => clearInterval(drip));
    return 200;
  };
};

const delivered = (does: string, answer: Does, status = 200): Receiver => ({
  does,
  answer,
  ends: [status, status],
  connections: 1,
});
/** Delivered, but its connection is not used again. */
const closing = (does: string, answer: Does, status = 200): Receiver => ({
  ...delivered(does, answer, status),
  connections: 2,
});
const surplus = (does: string, answer: Does, status = 200): Receiver => ({
  ...closing(does, answer, status),
  surplus: true,
});
const failing = (does: string, answer: Does, ending: Ending): Receiver => ({
  does,
  answer,
  ends: [ending, ending],
  connections: 2,
});
const unreadable = (does: string, bytes: string, reason: string): Receiver =>
  failing(does, writes(bytes, 0), `protocol ${reason}`);

// An alert of TLS in the clear: "handshake failure", fatal.
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 40]);

export const RECEIVERS = {
  // What is an answer.
  plain: delivered('200 with a length', writes(OK)),
  created: delivered('201', writes('HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n', 201), 201),
  unknown_2xx: delivered(
    '299 without a reason phrase',
    writes('HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n', 299),
    299,
  ),
  no_content: delivered('204', writes('HTTP/1.1 204 No Content\r\n\r\n', 204), 204),
  reset_content: delivered(
    '205 with length 0',
    writes('HTTP/1.1 205 X\r\nContent-Length: 0\r\n\r\n', 205),
    205,
  ),
  chunked: delivered('chunks', writes(`${head('Transfer-Encoding: chunked')}2\r\nok\r\n0\r\n\r\n`)),
  chunk_extensions: delivered(
    'chunks with extensions',
    writes(`${head('Transfer-Encoding: chunked')}2;a="b"\r\nok\r\n0;c\r\n\r\n`),
  ),
  trailers: delivered(
    'chunks and trailers',
    writes(`${head('Trailer: X', 'Transfer-Encoding: chunked')}2\r\nok\r\n0\r\nX: y\r\n\r\n`),
  ),
  byte_by_byte: delivered('one byte at a time', drips(OK, 1)),
  continued: delivered('100, then 200', writes(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)),
  hinted: delivered('103 twenty times, then 200', writes(hints(20) + OK)),
  blank_lines_first: delivered('blank lines before the status', writes(`\r\n\r\n${OK}`)),
  kept_1_0: delivered(
    'HTTP/1.0 that keeps the connection',
    writes('HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok'),
  ),
  compressed: delivered('gzip, which nobody asked for', (wire) => {
    const body = gzipSync('ok');
    return writes(
      Buffer.concat([Buffer.from(head('Content-Encoding: gzip', `Content-Length: ${body.length}`)), body]),
    )(wire);
  }),
  http_1_0: closing('HTTP/1.0', ({ socket }) => (socket.end('HTTP/1.0 200 OK\r\n\r\nok'), 200)),
  no_length: closing('a body to the end of the connection', ({ socket }) => (socket.end(`${head()}ok`), 200)),
  closes: closing('Connection: close', writes(`${head('Connection: close', 'Content-Length: 2')}ok`)),
  half_closes: closing('closes its sending side after the answer', ({ socket }) => (socket.end(OK), 200)),
  body_breaks: closing(
    'a body that breaks off',
    thenAfter(20, `${head('Content-Length: 99')}ok`, (wire) => wire.reset()),
  ),
  bad_chunk: closing(
    'a body whose chunks cannot be read',
    writes(`${head('Transfer-Encoding: chunked')}zz\r\n`),
  ),
  long_body: closing('a body of 100 KB', writes(head('Content-Length: 100000') + 'x'.repeat(100_000))),
  slow_body: closing(
    'a body that takes minutes',
    drips(head('Content-Length: 9999') + 'x'.repeat(9_999), 20),
  ),
  reset_content_body: closing(
    '205 with a body',
    writes('HTTP/1.1 205 X\r\nContent-Length: 2\r\n\r\nok', 205),
    205,
  ),

  // Bytes that belong to no request.
  twice_at_once: surplus('two answers in one packet', (wire) =>
    (wire.nth === 1 ? writes(OK + OK) : writes(ERROR, 500))(wire),
  ),
  twice_half_ms: surplus('a second answer 0.5 ms after the first', twice(0.5)),
  twice_2_ms: surplus('a second answer 2 ms after the first', twice(2)),
  twice_20_ms: surplus('a second answer 20 ms after the first', twice(20)),
  twice_200_ms: surplus('a second answer 200 ms after the first', twice(200)),
  no_content_body: surplus('204 with a body', writes('HTTP/1.1 204 X\r\n\r\n{"ok":true}', 204), 204),
  no_content_body_later: surplus(
    '204, and its body in a later packet',
    thenAfter(5, 'HTTP/1.1 204 X\r\n\r\n', ({ socket }) => socket.write('{"ok":true}'), 204),
    204,
  ),
  reset_content_body_later: surplus(
    '205, and its body in a later packet',
    thenAfter(5, 'HTTP/1.1 205 X\r\nContent-Length: 0\r\n\r\n', ({ socket }) => socket.write('ok'), 205),
    205,
  ),
  blank_line_behind: surplus('a blank line behind the answer', writes(`${OK}\r\n`)),
  half_an_answer_behind: surplus('the first half of another answer behind it', writes(`${OK}HTTP/1.1 200 O`)),
  chunk_end_later: surplus(
    'the end of chunks behind a length',
    thenAfter(5, OK, ({ socket }) => socket.write('0\r\n\r\n')),
  ),
  bad_request_later: surplus(
    '400 to nothing, as some proxies send',
    thenAfter(5, OK, ({ socket }) => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')),
  ),
  times_out_idle: closing(
    '408 to an idle connection',
    thenAfter(5, OK, ({ socket }) => socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n')),
  ),

  // Failures of a connection that was used before.
  times_out_kept: closing(
    '408 to a second request',
    later(writes('HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n', 408)),
  ),
  misreads_kept: closing(
    '501 to a second request, for which it takes the unread body of the first',
    later(writes('HTTP/1.1 501 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', 501)),
  ),
  refuses_kept: {
    ...delivered(
      '400 to a second request, which it has read',
      later(writes('HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n', 400)),
    ),
    ends: [200, 400],
  },
  alert_kept: closing(
    'a TLS alert to a second request',
    later((wire) => (wire.beneath(ALERT), null)),
  ),
  junk_kept: closing(
    'junk to a second request',
    later(({ socket }) => (socket.write('+PONG\r\n'), null)),
  ),
  closes_kept: closing(
    'closes at a second request',
    later(({ socket }) => (socket.end(), null)),
  ),
  resets_kept: closing(
    'resets at a second request',
    later((wire) => (wire.reset(), null)),
  ),

  // What is no success.
  error: failing('500', writes(ERROR, 500), 500),
  redirect: failing('302', writes('HTTP/1.1 302 X\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n', 302), 302),
  teapot_1_0: failing('503 by HTTP/1.0', ({ socket }) => (socket.end('HTTP/1.0 503 X\r\n\r\n'), 503), 503),
  closes_first: failing('closes without an answer', ({ socket }) => (socket.end(), null), 'reset'),
  resets_first: failing('resets without an answer', (wire) => (wire.reset(), null), 'reset'),
  half_a_line: failing('half a status line', ({ socket }) => (socket.end('HTTP/1.1 20'), null), 'reset'),
  mail: unreadable('greets like a mail server', '220 mail.example ESMTP\r\n', 'version'),
  page: unreadable('HTML without a head', '<html>\r\n', 'version'),
  http_2: unreadable('HTTP/2.0', 'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n', 'version'),
  rtsp: unreadable('RTSP', 'RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', 'version'),
  long_head: unreadable('200 with over 16 KiB of headers', head(`X: ${'a'.repeat(20_000)}`), 'headers'),
  two_lengths: unreadable(
    '200 with two lengths',
    `${head('Content-Length: 1', 'Content-Length: 2')}ab`,
    'lengths',
  ),
  length_and_chunks: unreadable(
    '200 with a length and chunks',
    `${head('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    'lengths',
  ),
  chunks_and_length: unreadable(
    '200 with chunks and a length',
    `${head('Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`,
    'lengths',
  ),
  bad_length: unreadable('200 with a length that is no number', head('Content-Length: 2, 2'), 'length'),
  bare_line_ends: unreadable(
    '200 with line ends without CR',
    'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    'line_end',
  ),
  folded: unreadable('200 with a folded header', head('X: a', '  b', 'Content-Length: 0'), 'header'),
  long_status: unreadable('a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n', 'status'),
  too_many_hints: unreadable('103 without end', hints(21) + OK, 'informational'),
  switches: unreadable('101', 'HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', 'upgrade'),
} satisfies Readonly<Record<string, Receiver>>;

export type ReceiverName = keyof typeof RECEIVERS;

/** Knows the TCP connections of a TLS server, and counts the requests of each. @returns what gives the wire of a request */
export function watchWires(server: Server): (socket: TLSSocket) => Wire {
  const beneath = new Map<number | undefined, Socket>();
  const requests = new WeakMap<TLSSocket, number>();
  server.on('connection', (tcp: Socket) => {
    const { remotePort } = tcp;
    beneath.set(remotePort, tcp);
    tcp.once('close', () => beneath.get(remotePort) === tcp && beneath.delete(remotePort));
  });
  return (socket) => {
    const nth = (requests.get(socket) ?? 0) + 1;
    requests.set(socket, nth);
    const tcp = beneath.get(socket.remotePort);
    return {
      socket,
      nth,
      beneath: (bytes) => void tcp?.write(bytes),
      reset: () => void tcp?.resetAndDestroy(),
    };
  };
}
