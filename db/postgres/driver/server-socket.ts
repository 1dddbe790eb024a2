import { once } from 'node:events';
import net from 'node:net';
import { Duplex } from 'node:stream';
import { searchServer } from './server-search';
import { connectSecurely, readServerTls } from './server-tls';
import { readServers, type Server } from './servers';

/** postgres.js' option of this name, which its types do not know. */
type SocketOption = (options: {
  path?: string | undefined;
  host: string[];
  port: number[];
}) => net.Socket | Promise<Duplex>;

const losses = new WeakSet<object>();

/** Whether a connection to Postgres was lost by this error, whatever its code. */
export const endedConnection = (error: unknown) =>
  typeof error === 'object' && error !== null && losses.has(error);

/** Longest that TCP and TLS may take together. */
const CONNECT_TIMEOUT_MS = 5_000;
/** The same for one of several servers, while another may lead; and then until its session has started. */
const SEARCH_CONNECT_MS = 3_000;
/** Below the timeout that postgres.js is given. */
const SEARCH_READY_MS = 4_500;

/**
 * What postgres.js is given for a database URL: the URL with one server and without what it says of TLS, and a socket that does both. Of
 * several servers it finds the one that takes writes. A socket ends after `quietMs` without a byte; 0: never.
 * @throws see readServers and readServerTls.
 */
export function serverSocket(databaseUrl: string, quietMs: number): { url: string; socket: SocketOption } {
  const { url: single, servers, leaderOnly } = readServers(databaseUrl);
  const { url, tls } = readServerTls(single);
  const ours = <Socket extends net.Socket>(socket: Socket) => {
    if (quietMs > 0)
      socket.setTimeout(quietMs, () => socket.destroy(new Error(`Postgres was silent for ${quietMs} ms`)));
    return refuseLeftovers(withoutBackPressure(failTwice(socket)));
  };
  if (leaderOnly || servers.length > 1) {
    const connect = (server: Server) =>
      tls === null
        ? connectPlainly(server, SEARCH_CONNECT_MS)
        : connectSecurely(server, tls, SEARCH_CONNECT_MS);
    const search = searchServer({
      servers,
      leaderOnly,
      connect: (server) => connect(server).then(ours),
      failed: stillborn,
      readyMs: SEARCH_READY_MS,
    });
    return { url, socket: search };
  }
  const socket: SocketOption = (options) => {
    const [host = 'localhost'] = options.host;
    const [port = 5432] = options.port;
    if (options.path) return ours(net.connect(options.path));
    if (tls === null) return ours(net.connect(port, host));
    return connectSecurely({ host, port }, tls, CONNECT_TIMEOUT_MS).then(ours, stillborn);
  };
  return { url, socket };
}

/** @throws when that takes longer than `timeoutMs`. */
async function connectPlainly(server: Server, timeoutMs: number): Promise<net.Socket> {
  const socket = net.connect(server);
  const late = new Error(`Postgres did not answer within ${timeoutMs} ms`);
  const timer = setTimeout(() => socket.destroy(late), timeoutMs);
  try {
    await once(socket, 'connect');
    return socket;
  } finally {
    clearTimeout(timer);
  }
}

/** postgres.js never uses a connection again whose socket it was not given. One that fails at its first write it opens anew. */
function stillborn(error: Error): Duplex {
  losses.add(error);
  return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done(error) });
}

/**
 * postgres.js 3.4.9 rejects what is under way when it hears of an error, and nothing more when the connection then closes. But
 * a turn of the event loop lies between the two, in which it still hands statements to that connection: they would never
 * settle. So it hears of an error once more, right before the close.
 */
function failTwice<Socket extends net.Socket>(socket: Socket): Socket {
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (name: string | symbol, ...args: unknown[]) => {
    if (name === 'error') losses.add(args[0] as Error);
    if (name === 'close' && args[0] === true)
      emit(
        'error',
        Object.assign(new Error('the connection to Postgres is gone'), { code: 'CONNECTION_CLOSED' }),
      );
    return emit(name, ...args);
  };
  return socket;
}

/**
 * postgres.js 3.4.9 does two wrong things with back pressure: a `begin` whose write reports it does not set its connection aside, and
 * `drain` gives a connection back to the pool, also in the middle of a transaction (over TLS it may come after the answer). In both
 * cases others use the open transaction (porsager/postgres#823). It needs neither: the answer to the last statement frees a connection.
 */
function withoutBackPressure<Socket extends net.Socket>(socket: Socket): Socket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]) => {
    write(...args);
    return true;
  };
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (name: string | symbol, ...args: unknown[]) => name === 'drain' || emit(name, ...args);
  return socket;
}

/**
 * postgres.js 3.4.9 keeps what it was about to write when its connection closes, and the mark that a write is due: on the next
 * socket it then appends its first message to the leftovers, and writes nothing before they exceed 1 KiB. So a socket that is not
 * written to at once is destroyed, and so is one whose first write is not one whole message; the statement that waits for it stays.
 */
function refuseLeftovers<Socket extends net.Socket>(socket: Socket): Socket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let begun = false;
  socket.write = (...args: unknown[]) => {
    const [chunk] = args as [Buffer];
    if (!begun && (chunk.length < 8 || chunk.readUInt32BE(0) !== chunk.length)) {
      socket.destroy();
      return true;
    }
    begun = true;
    return write(...args);
  };
  // It makes its first message as soon as it has the socket, and writes it in the phase of setImmediate that follows.
  setImmediate(() => setImmediate(() => void (begun || socket.destroy())));
  return socket;
}
