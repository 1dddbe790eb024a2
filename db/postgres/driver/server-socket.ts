import { readFileSync } from 'node:fs';
import net, { isIPv6 } from 'node:net';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { readServers, searchServer, type Server } from './servers';

type SocketOption = (options: {
  path?: string | undefined;
  host: string[];
  port: number[];
}) => net.Socket | Promise<Duplex>;

const losses = new WeakSet<object>();

/** Whether this error, whatever its code, means that a connection to Postgres was lost. */
export const endedConnection = (error: unknown) =>
  typeof error === 'object' && error !== null && losses.has(error);

/** Longest wait for the end of a connection that was closed, in milliseconds. */
const CLOSING_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** The same for one of several servers, because another may be the leader. */
const SEARCH_CONNECT_MS = 3_000;
/** Longest time until the session has started; less than the timeout given to postgres.js. */
const SEARCH_READY_MS = 4_500;

/**
 * Makes two options of postgres.js from a database URL: the URL with one server and without TLS
 * parameters, and a socket that does TLS and finds, among several servers, the one that takes writes. A
 * socket whose server owes an answer ends after `quietMs` without a byte; 0: never.
 * @throws see readServers and readServerTls
 */
export function serverSocket(databaseUrl: string, quietMs: number): { url: string; socket: SocketOption } {
  const { url: single, servers, leaderOnly } = readServers(databaseUrl);
  const { url, tls } = readServerTls(single);
  const ours = <Socket extends net.Socket>(socket: Socket) => {
    const debt = { answers: 0 };
    if (quietMs > 0)
      socket.setTimeout(quietMs).on('timeout', () => debt.answers > 0 && endSilent(socket, quietMs));
    // A server that is there closes its side at once.
    socket.once('finish', () => setTimeout(() => socket.destroy(), CLOSING_MS).unref());
    const whole = failAtFatalError(countAsked(socket, debt), () => (debt.answers -= 1));
    return refuseLeftovers(withoutBackPressure(failAgainAtClose(whole)));
  };
  if (leaderOnly || servers.length > 1) {
    const search = searchServer({
      servers,
      leaderOnly,
      connect: (server) => connectTo(server, tls, SEARCH_CONNECT_MS).then(ours),
      failed: failedSocket,
      readyMs: SEARCH_READY_MS,
    });
    return { url, socket: search };
  }
  const socket: SocketOption = (options) => {
    // postgres.js cuts an IPv6 address at its first colon.
    const host = isIPv6(servers[0].host) ? servers[0].host : (options.host[0] ?? 'localhost');
    const [port = 5432] = options.port;
    if (options.path) return ours(net.connect(options.path));
    // postgres.js names both where a server takes the connection and says nothing.
    const named = (socket: net.Socket) => Object.assign(ours(socket), { host, port });
    if (tls === null) return named(net.connect(port, host));
    return connectTo({ host, port }, tls, CONNECT_TIMEOUT_MS).then(named, failedSocket);
  };
  return { url, socket };
}

// A process that stood still comes to its timers first, and then to what has arrived meanwhile.
function endSilent(socket: net.Socket, quietMs: number): void {
  const { bytesRead } = socket;
  setTimeout(() => {
    if (socket.bytesRead === bytesRead) socket.destroy(new Error(`Postgres was silent for ${quietMs} ms`));
  });
}

// A socket that fails at its first write, so that postgres.js connects again.
function failedSocket(error: Error): Duplex {
  losses.add(error);
  return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done(error) });
}

// Node's error for a name of which no address answers has the errors of the addresses, and no message.
function withMessage(error: Error & { readonly errors?: readonly Error[] }): Error {
  error.message ||= (error.errors ?? []).map(({ message }) => message).join('; ');
  return error;
}

const SYNC = 0x53;
const FLUSH = 0x48;
const SIMPLE_QUERY = 0x51;

// Each write of postgres.js is whole messages. The server answers the first, which has no letter, each Sync and each simple query
// with a ReadyForQuery; a Flush is followed by the Sync of its statement. A socket that is owed none is idle: to end it would fail a
// statement that is made meanwhile.
function countAsked<Socket extends net.Socket>(socket: Socket, debt: { answers: number }): Socket {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let begun = false;
  let flushed = false;
  socket.write = (...args: unknown[]) => {
    const [chunk] = args as [Buffer];
    if (!begun) debt.answers = 1;
    for (let at = 0; begun && at < chunk.length; at += 1 + chunk.readUInt32BE(at + 1)) {
      const type = chunk[at];
      if (type === FLUSH || type === SIMPLE_QUERY || (type === SYNC && !flushed)) debt.answers += 1;
      flushed = type === FLUSH || (flushed && type !== SYNC);
    }
    begun = true;
    return write(...args);
  };
  return socket;
}

const READY_FOR_QUERY = 0x5a;
const ERROR_RESPONSE = 0x45;
const HEADER_BYTES = 5;
/** What a ReadyForQuery says outside a transaction: I. */
const NO_TRANSACTION = 0x49;
/** SQLSTATE of a write on a standby, or where a transaction may only read. */
const READ_ONLY = '25006';

// A FATAL error is the last message of a session. postgres.js 3.4.9 waits for a ReadyForQuery that does
// not come, keeps the error until the connection is used again, whenever that is, and rejects the first
// statement of the next session with it. This rejects what is under way at once. An error of which a
// part has arrived is kept until the rest has. A session in which nothing may be written ends once it is
// idle: it began on a standby, after a failover for example, and would stay there for up to an hour.
// onReady returns how many answers the server still owes.
function failAtFatalError<Socket extends net.Socket>(socket: Socket, onReady: () => number): Socket {
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  /** Bytes of the message under way that have not arrived. */
  let toCome = 0;
  let kept: Buffer | null = null;
  let isReadOnly = false;
  socket.emit = (name: string | symbol, ...args: unknown[]) => {
    if (name !== 'data') return emit(name, ...args);
    let isIdle = false;
    const arrived = args[0] as Buffer;
    const chunk: Buffer = kept === null ? arrived : Buffer.concat([kept, arrived]);
    kept = null;
    let at = toCome;
    while (at < chunk.length) {
      const left = chunk.length - at;
      // Its length counts itself, and not the letter before it.
      const length = left < HEADER_BYTES ? 0 : 1 + Math.max(chunk.readUInt32BE(at + 1), 4);
      const isError = chunk[at] === ERROR_RESPONSE;
      if (length === 0 || (isError && length > left)) {
        kept = chunk.subarray(at);
        break;
      }
      const error = isError ? errorOf(chunk.toString('utf8', at + HEADER_BYTES, at + length)) : null;
      if (error?.severity === 'FATAL' || error?.severity === 'PANIC') {
        if (at > 0) emit('data', chunk.subarray(0, at));
        emit('error', error);
        socket.destroy();
        return true;
      }
      if (error?.code === READ_ONLY) isReadOnly = true;
      if (chunk[at] === READY_FOR_QUERY)
        isIdle = onReady() <= 0 && chunk[at + HEADER_BYTES] === NO_TRANSACTION;
      at += length;
    }
    toCome = Math.max(at - chunk.length, 0);
    const emitted = at === 0 || emit('data', kept === null ? chunk : chunk.subarray(0, at));
    if (isReadOnly && isIdle) socket.destroy();
    return emitted;
  };
  return socket;
}

function errorOf(text: string) {
  const fields = text.split('\0');
  const field = (type: string) => fields.find((one) => one.startsWith(type))?.slice(1) ?? '';
  return Object.assign(new Error(field('M')), { code: field('C'), severity: field('V') });
}

// At an error of the socket postgres.js 3.4.9 rejects the statements under way, but none at the close
// that follows. Statements that it gives to the connection between the two would never settle. This
// emits a second error right before the close.
function failAgainAtClose<Socket extends net.Socket>(socket: Socket): Socket {
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (name: string | symbol, ...args: unknown[]) => {
    if (name === 'error') losses.add(withMessage(args[0] as Error));
    if (name === 'close' && args[0] === true)
      emit(
        'error',
        Object.assign(new Error('the connection to Postgres is gone'), { code: 'CONNECTION_CLOSED' }),
      );
    return emit(name, ...args);
  };
  return socket;
}

// postgres.js 3.4.9 handles back pressure wrongly: a `begin` whose write reports it does not set its
// connection aside, and `drain` gives a connection back to the pool in the middle of a transaction. In
// both cases others use the open transaction (porsager/postgres#823). It needs neither, because the
// answer to the last statement frees a connection.
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

// When a connection closes, postgres.js 3.4.9 keeps its unsent bytes and the flag that a write is due.
// It appends the first message of the next socket to them, and writes nothing below 1 KiB. This
// destroys a socket that is not written to at once, or whose first write is not one whole message. The
// waiting statement is kept, and gets another socket.
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
  // postgres.js writes its first message in the setImmediate phase after it gets the socket.
  setImmediate(() => setImmediate(() => void (begun || socket.destroy())));
  return socket;
}

/** As in libpq, but `allow` means the same as `prefer`. */
const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];
/** Other parameters of libpq, as providers write them into an address. Postgres would take them for settings. */
const OF_LIBPQ_ALONE =
  /^(?!(sslmode|sslrootcert)$)(channel_binding|gss\w*|hostaddr|keepalives\w*|krbsrvname|load_balance_hosts|m(in|ax)_protocol_version|passfile|require\w*|s(cram|ervice|sl)\w*)$/;
const PEM = /-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----/;
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

interface ServerTls {
  readonly optional: boolean;
  /** Read for each connection, as libpq does, because an authority is renewed while processes run. */
  readonly authority: string | null;
  readonly options: tls.ConnectionOptions;
}

/**
 * Reads and removes the TLS parameters of a database URL: `sslmode` as in libpq, but `disable` by
 * default, and `sslrootcert`, the authority to trust (a PEM file, or `system`), with which `require`
 * means `verify-ca`.
 * @throws for an unknown mode, an unreadable authority, a mode that would not use it, or another parameter of libpq
 */
export function readServerTls(databaseUrl: string): { url: string; tls: ServerTls | null } {
  const url = new URL(databaseUrl);
  const mode = url.searchParams.get('sslmode') ?? 'disable';
  const authority = url.searchParams.get('sslrootcert');
  if (url.searchParams.has('ssl')) throw new Error('say sslmode=… instead of ssl=…');
  if (!MODES.includes(mode)) throw new Error(`sslmode is one of ${MODES.join(', ')}`);
  const other = [...url.searchParams.keys()].find((name) => OF_LIBPQ_ALONE.test(name));
  if (other !== undefined)
    throw new Error(
      `leave out ${other}: of libpq's parameters there are sslmode, sslrootcert, target_session_attrs`,
    );
  const encrypts = ['require', 'verify-ca', 'verify-full'].includes(mode);
  if (authority !== null && !encrypts) throw new Error('sslrootcert wants sslmode=verify-full or verify-ca');
  if (mode === 'disable' && !url.searchParams.has('sslmode')) return { url: databaseUrl, tls: null };
  url.searchParams.delete('sslmode');
  url.searchParams.delete('sslrootcert');
  if (mode === 'disable') return { url: url.href, tls: null };
  const verifies = mode.startsWith('verify') || authority !== null;
  const file = authority === 'system' ? null : authority;
  // Node leaves out what is no certificate, and would then trust nobody.
  if (file !== null && !PEM.test(readFileSync(file, 'latin1')))
    throw new Error(`sslrootcert: ${file} has no certificate in PEM`);
  const options = {
    rejectUnauthorized: verifies,
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
  return { url: url.href, tls: { optional: !encrypts, authority: file, options } };
}

/**
 * Connects to Postgres.
 * @throws after `timeoutMs`, without TLS unless it is optional, or for a bad certificate
 */
async function connectTo(server: Server, wanted: ServerTls | null, timeoutMs: number): Promise<net.Socket> {
  const socket = net.connect(server);
  const name = `Postgres at ${server.host}:${server.port}`;
  const late = new Error(`${name} did not answer within ${timeoutMs} ms`);
  const timer = setTimeout(() => socket.destroy(late), timeoutMs);
  try {
    await next(socket, 'connect');
    if (wanted === null) return socket;
    socket.write(SSL_REQUEST);
    const answer = ((await next(socket, 'data')) as Buffer).toString('latin1');
    if (answer === 'N' && wanted.optional) return socket;
    if (answer === 'N') throw new Error(`${name} has no TLS`);
    // An ErrorResponse, or bytes after the letter, which the owner of the certificate did not send.
    if (answer !== 'S') throw new Error(`${name} did not agree on TLS`);
    const { host } = server;
    const ca = wanted.authority === null ? undefined : readFileSync(wanted.authority);
    const servername = net.isIP(host) ? '' : host;
    const secured = tls.connect({ ...wanted.options, ...(ca && { ca }), socket, host, servername });
    await next(secured, 'secureConnect');
    return secured;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The next event of this name.
 * @throws the error that ends the socket before it
 */
function next(socket: net.Socket, event: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve);
    socket.once('error', (error) => reject(withMessage(error)));
    socket.once('close', () => reject(new Error('Postgres closed the connection')));
  });
}
