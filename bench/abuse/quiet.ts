import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { percentile } from '../rounds';

export interface QuietOptions {
  readonly port: number;
  readonly ca: string;
  /** Another than the stranger's. */
  readonly localAddress: string;
  readonly key: string;
  readonly body: string;
  /** Milliseconds between two calls: the load does not depend on how fast it is served. */
  readonly everyMs: number;
  readonly durationMs: number;
}

export interface QuietCalls {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers other than 200, and calls that got none. */
  readonly failures: number;
  /** Calls that could not begin in time, because every connection had one under way. They count with the slowest. */
  readonly late: number;
}

const CONNECTIONS = 16;

/** Calls with a valid key at a steady pace over kept connections. */
export async function callQuietly(options: QuietOptions): Promise<QuietCalls> {
  const { port, ca, localAddress, key, body, everyMs, durationMs } = options;
  const bytes =
    `POST /v1/finance-quote HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  // `localAddress` is an option of the socket beneath, which the types of TLS leave out.
  const target = { host: '127.0.0.1', port, ca, localAddress, servername: 'localhost' };
  const free: TLSSocket[] = [];
  for (let nth = 0; nth < CONNECTIONS; nth += 1) {
    const socket = connect(target);
    await once(socket, 'secureConnect');
    free.push(socket.on('error', () => undefined));
  }
  const all = [...free];
  const times: number[] = [];
  const calls: Promise<void>[] = [];
  let failures = 0;
  let late = 0;
  const startedAt = performance.now();
  for (let nth = 0; nth * everyMs < durationMs; nth += 1) {
    await delay(Math.max(0, startedAt + nth * everyMs - performance.now()));
    const dueAt = performance.now();
    const socket = free.shift();
    if (socket === undefined) {
      late += 1;
      continue;
    }
    calls.push(
      new Promise((resolve) => {
        let text = '';
        const end = (ok: boolean) => {
          socket.removeAllListeners('data').removeAllListeners('close');
          times.push(performance.now() - dueAt);
          if (ok) free.push(socket);
          else failures += 1;
          resolve();
        };
        socket.once('close', () => end(false));
        socket.on('data', (chunk) => {
          text += chunk.toString('latin1');
          const head = text.indexOf('\r\n\r\n');
          const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
          if (head !== -1 && text.length >= head + 4 + length) end(text.startsWith('HTTP/1.1 200'));
        });
        socket.write(bytes);
      }),
    );
  }
  await Promise.all(calls);
  for (const socket of all) socket.destroy();
  times.sort((a, b) => a - b);
  for (let nth = 0; nth < late; nth += 1) times.push(times.at(-1) ?? NaN);
  const at = (share: number) => percentile(times, share);
  return { p50Ms: at(0.5), p99Ms: at(0.99), failures, late };
}
