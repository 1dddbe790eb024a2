import { connect, type Socket } from 'node:net';

export interface LoadOptions {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connections: number;
  /** Number of requests, after which the load ends. */
  readonly requests: number;
}

export interface LoadResult {
  readonly perSecond: number;
  /** Milliseconds from the first byte sent to the last received. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers other than 200. */
  readonly failures: number;
}

/**
 * Loads an address over keep-alive connections, each with one request under way. Made of bare sockets and constant
 * bytes, because every cycle it spends is missing to what it measures on two cores; resolution in microseconds.
 */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { port, headers, body, connections, requests } = options;
  const lines = Object.entries({ Host: 'bench', 'Content-Type': 'application/json', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const bytes = Buffer.from(
    `POST /v1/finance-quote HTTP/1.1\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const times = new Float64Array(requests);
  let sent = 0;
  let received = 0;
  let failures = 0;

  const drive = (socket: Socket, done: () => void, fail: (error: Error) => void) => {
    let startedAt = 0;
    let pending: Buffer = Buffer.alloc(0);
    const next = () => {
      if (sent >= requests) {
        socket.end();
        done();
        return;
      }
      sent += 1;
      startedAt = performance.now();
      socket.write(bytes);
    };
    socket.on('error', fail);
    socket.on('data', (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const end = pending.indexOf('\r\n\r\n');
      if (end === -1) return;
      const answerHead = pending.toString('latin1', 0, end);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(answerHead)?.[1] ?? 0);
      if (pending.length < end + 4 + length) return;
      times[received] = performance.now() - startedAt;
      received += 1;
      if (!answerHead.startsWith('HTTP/1.1 200')) failures += 1;
      pending = Buffer.alloc(0);
      next();
    });
    next();
  };

  const start = performance.now();
  await Promise.all(
    Array.from(
      { length: connections },
      () =>
        new Promise<void>((resolve, reject) => {
          const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () =>
            drive(socket, resolve, reject),
          );
          socket.once('error', reject);
        }),
    ),
  );
  const seconds = (performance.now() - start) / 1000;
  const sorted = times.subarray(0, received).toSorted();
  const at = (share: number) => sorted[Math.min(received - 1, Math.floor(received * share))] ?? Number.NaN;
  return { perSecond: received / seconds, p50Ms: at(0.5), p99Ms: at(0.99), failures };
}
