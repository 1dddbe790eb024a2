import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';

export interface Address {
  readonly port: number;
  /** Authority of the server's certificate, PEM; null: plain HTTP. */
  readonly ca: string | null;
}

export interface Requests {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
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

/** Opens keep-alive connections; TLS is agreed on before it returns, so that no handshake is measured. */
export async function openConnections({ port, ca }: Address, connections: number): Promise<net.Socket[]> {
  const address = { port, host: '127.0.0.1' };
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = ca === null ? net.connect(address) : tls.connect({ ...address, ca });
      await once(socket, ca === null ? 'connect' : 'secureConnect');
      return socket.setNoDelay(true);
    }),
  );
}

/** The same on connections that it opens itself. */
export async function load(
  options: Address & Requests & { readonly connections: number },
): Promise<LoadResult> {
  return loadOver(await openConnections(options, options.connections), options);
}

/**
 * Loads a server over open connections, each with one request under way, and closes them. Made of bare sockets and constant
 * bytes, because every cycle it spends is missing to what it measures on two cores; resolution in microseconds.
 */
export async function loadOver(
  sockets: readonly net.Socket[],
  { headers, body, requests }: Requests,
): Promise<LoadResult> {
  const lines = Object.entries({ Host: 'bench', 'Content-Type': 'application/json', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const bytes = Buffer.from(
    `POST /v1/finance-quote HTTP/1.1\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const times = new Float64Array(requests);
  let sent = 0;
  let received = 0;
  let failures = 0;

  const drive = (socket: net.Socket, done: () => void, fail: (error: Error) => void) => {
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
    sockets.map((socket) => new Promise<void>((resolve, reject) => drive(socket, resolve, reject))),
  );
  const seconds = (performance.now() - start) / 1000;
  const sorted = times.subarray(0, received).toSorted();
  const at = (share: number) => sorted[Math.min(received - 1, Math.floor(received * share))] ?? Number.NaN;
  return { perSecond: received / seconds, p50Ms: at(0.5), p99Ms: at(0.99), failures };
}
