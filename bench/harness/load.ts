import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { say } from '../../testbed/say';
import { pause } from './bench';
import { spread, type Figures } from './rounds';

export interface Server {
  readonly port: number;
  /** Authority of its certificate, PEM; null: it speaks plain HTTP. */
  readonly ca: string | null;
}

export interface Quotes {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly requests: number;
  /**
   * Milliseconds between the starts of two requests, so that the load does not depend on how fast it is served. By default each
   * connection sends its next request when it has an answer.
   */
  readonly everyMs?: number;
}

/** Opens keep-alive connections. TLS is agreed on before it returns, so that no handshake is measured. */
export async function openConnections(
  { port, ca }: Server,
  connections: number,
  localAddress?: string,
): Promise<net.Socket[]> {
  // `localAddress` belongs to the socket under TLS: the types of TLS leave it out.
  const address = { port, host: '127.0.0.1', localAddress, servername: 'localhost' };
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = ca === null ? net.connect(address) : tls.connect({ ...address, ca });
      await once(socket, ca === null ? 'connect' : 'secureConnect');
      return socket.setNoDelay(true);
    }),
  );
}

/** Asks for quotes over connections that it opens itself. */
export async function load(options: Server & Quotes & { readonly connections: number }): Promise<Figures> {
  return loadOver(await openConnections(options, options.connections), options);
}

/**
 * Asks for quotes over open connections, each with one request under way, and closes them. It is made of bare sockets and
 * constant bytes, because every cycle it uses is missing to what it measures on two cores.
 * @returns requests per second, the spread of the times from the moment a request is due to the last byte of its answer, and
 *   `failures`: answers other than 200, and requests whose connection was closed; the first is printed.
 */
export async function loadOver(sockets: readonly net.Socket[], quotes: Quotes): Promise<Figures> {
  const { headers, body, requests, everyMs = 0 } = quotes;
  const lines = Object.entries({ Host: 'localhost', 'Content-Type': 'application/json', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const bytes = Buffer.from(
    `POST /v1/finance-quote HTTP/1.1\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const times = new Float64Array(requests);
  /** Connections without a request, and requests without a connection: the moments at which they were due. */
  const idle: ((dueAt: number) => void)[] = [];
  const waiting: number[] = [];
  let [sent, ended, failures, open] = [0, 0, 0, sockets.length];

  const startedAt = performance.now();
  await new Promise<void>((resolve) => {
    const drive = (socket: net.Socket) => {
      let dueAt = Number.NaN;
      let pending: Buffer = Buffer.alloc(0);
      const send = (at: number) => {
        dueAt = at;
        socket.write(bytes);
      };
      const next = () => {
        const at = everyMs > 0 ? waiting.shift() : sent < requests ? performance.now() : undefined;
        if (at === undefined) return void idle.push(send);
        if (everyMs === 0) sent += 1;
        send(at);
      };
      const end = (fault: string | null) => {
        times[ended] = performance.now() - dueAt;
        dueAt = Number.NaN;
        ended += 1;
        if (fault !== null && failures === 0) say(`a quote failed: ${fault}`);
        if (fault !== null) failures += 1;
        if (ended === requests) resolve();
      };
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open -= 1;
        if (!Number.isNaN(dueAt)) end('its connection was closed');
        if (open === 0) resolve();
      });
      socket.on('data', (chunk) => {
        pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
        const headEnd = pending.indexOf('\r\n\r\n');
        if (headEnd === -1) return;
        const answer = pending.toString('latin1', 0, headEnd);
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? 0);
        if (pending.length < headEnd + 4 + length) return;
        const fault = answer.startsWith('HTTP/1.1 200') ? null : pending.toString('utf8', headEnd + 4);
        pending = Buffer.alloc(0);
        end(fault);
        next();
      });
      next();
    };
    for (const socket of sockets) drive(socket);
    if (everyMs > 0) void keepPace();
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  const left = requests - ended;
  for (const socket of sockets) socket.destroy();
  return { per_second: ended / seconds, ...spread(times.subarray(0, ended)), failures: failures + left };

  async function keepPace(): Promise<void> {
    for (; sent < requests && open > 0; sent += 1) {
      await pause(startedAt + sent * everyMs - performance.now());
      const send = idle.shift();
      if (send === undefined) waiting.push(performance.now());
      else send(performance.now());
    }
  }
}
