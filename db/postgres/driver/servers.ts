import type net from 'node:net';
import type { Duplex } from 'node:stream';

export interface Server {
  readonly host: string;
  readonly port: number;
}

interface Servers {
  /** The URL with only the first server, and without `target_session_attrs`. */
  readonly url: string;
  readonly servers: readonly [Server, ...Server[]];
  readonly leaderOnly: boolean;
}

const URL_PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is;
const HOST = /^(\[[^\]]+\]|[^:[\]]*)(?::(\d+))?$/;
const DEFAULT_PORT = 5432;

/**
 * Reads the servers of a database URL in libpq's form:
 * `postgres://a,b:5433/db?target_session_attrs=read-write`. `read-write` and `primary` mean the server
 * that takes writes, `any` whichever answers. Several servers without the parameter mean `read-write`;
 * a single server is always accepted.
 * @throws when it is no URL, or asks for another kind of server
 */
export function readServers(databaseUrl: string): Servers {
  const [, before, hosts, after] = URL_PARTS.exec(databaseUrl) ?? [];
  if (before === undefined || hosts === undefined || after === undefined) throw new Error('not a URL');
  if (/^[^=]*@/.test(after) || !isEncoded(before))
    throw new Error('in user and password, % is written as %25, / as %2F, # as %23, ? as %3F');
  const [first, ...others] = hosts.split(',').map(readServer);
  const url = new URL(`${before}${hosts.split(',')[0]}${after}`);
  if (url.searchParams.has('host') || hosts.includes('%'))
    throw new Error('its host is a name or an address before the name of the database, and no socket');
  const wanted = url.searchParams.get('target_session_attrs');
  if (wanted !== null && !['read-write', 'primary', 'any'].includes(wanted))
    throw new Error('target_session_attrs is one of read-write, primary, any');
  url.searchParams.delete('target_session_attrs');
  return {
    url: wanted === null && others.length === 0 ? databaseUrl : url.href,
    servers: [first as Server, ...others],
    leaderOnly: wanted === null ? others.length > 0 : wanted !== 'any',
  };
}

function isEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== '';
  } catch {
    return false;
  }
}

function readServer(text: string, _at: number, all: readonly string[]): Server {
  const [, host, port = DEFAULT_PORT] = HOST.exec(text) ?? [];
  if (host === undefined || (host === '' && all.length > 1)) throw new Error('not a list of hosts');
  return { host: host.replaceAll(/[[\]]/g, '') || 'localhost', port: Number(port) };
}

const serverName = ({ host, port }: Server) => `${host.includes(':') ? `[${host}]` : host}:${port}`;

interface ServerSearch extends Pick<Servers, 'servers' | 'leaderOnly'> {
  readonly connect: (server: Server) => Promise<net.Socket>;
  readonly failed: (error: Error) => Duplex;
  /** Longest time until a session is ready, in ms. A frozen server accepts and sends nothing. */
  readonly readyMs: number;
}

/**
 * Opens the connections of a pool to the server that takes writes, and remembers which it was.
 *
 * A server is judged by what it reports as the session starts. When a connection closes before it is
 * ready and without an error, postgres.js keeps its statement and reconnects, so that each server is
 * tried once for a statement. While none takes writes, further statements fail with an error.
 */
export function searchServer(options: ServerSearch): () => Promise<Duplex> {
  const { servers, leaderOnly, connect, failed, readyMs } = options;
  let at = 0;
  let misses = 0;

  function leave(server: Server): void {
    if (servers[at] !== server) return;
    at = (at + 1) % servers.length;
    misses += 1;
  }
  const none = (server: Server, fault: string) =>
    new Error(
      `no server of ${servers.map(serverName).join(', ')} ${leaderOnly ? 'takes writes' : 'answers'}: ${serverName(server)} ${fault}`,
    );

  function judged(socket: net.Socket, server: Server): net.Socket {
    let decided = false;
    const decide = (fault: string | null) => {
      if (decided) return;
      decided = true;
      clearTimeout(timer);
      if (fault === null) {
        misses = 0;
        return;
      }
      leave(server);
      if (misses < servers.length) socket.destroy();
      // The server has closed the connection, and postgres.js would reconnect endlessly.
      else if (socket.destroyed) socket.emit('error', none(server, fault));
      else socket.destroy(none(server, fault));
    };
    const timer = setTimeout(decide, readyMs, `was silent for ${readyMs} ms`);
    return watchStartup(socket, { leaderOnly, decide });
  }

  return async () => {
    for (let tries = 1; ; tries += 1) {
      const server = servers[at] as Server;
      try {
        return judged(await connect(server), server);
      } catch (error) {
        leave(server);
        if (tries >= servers.length)
          return failed(none(server, `cannot be reached: ${(error as Error).message}`));
      }
    }
  };
}

const PARAMETER_STATUS = 'S';
const ERROR_RESPONSE = 'E';
const READY_FOR_QUERY = 'Z';
const CANNOT_CONNECT_NOW = '57P03';

/** Parameters that Postgres reports as a session starts. `on` means that the server takes no writes. */
const READ_ONLY = { in_hot_standby: 'is a standby', default_transaction_read_only: 'is read-only' } as const;

interface StartupWatch {
  readonly leaderOnly: boolean;
  readonly decide: (fault: string | null) => void;
}

// Reads a server's messages until its session is ready, and withholds the one that refuses it.
function watchStartup<Socket extends net.Socket>(socket: Socket, { leaderOnly, decide }: StartupWatch) {
  const emit = socket.emit.bind(socket) as (name: string | symbol, ...args: unknown[]) => boolean;
  let pending: Buffer | null = Buffer.alloc(0);
  const end = (fault: string | null) => {
    pending = null;
    decide(fault);
  };
  socket.emit = (name: string | symbol, ...args: unknown[]) => {
    if (pending === null) return emit(name, ...args);
    if (name === 'close') end('closed the connection');
    if (name !== 'data') return emit(name, ...args);
    pending = Buffer.concat([pending, args[0] as Buffer]);
    while (pending.length > 4 && pending.length > pending.readUInt32BE(1)) {
      const length = pending.readUInt32BE(1) + 1;
      const fault = faultOf(pending.subarray(0, length), leaderOnly);
      if (fault !== undefined) {
        end(fault);
        return fault === null ? emit(name, ...args) : true;
      }
      pending = pending.subarray(length);
    }
    return emit(name, ...args);
  };
  return socket;
}

/** The fault that a message shows; null when the session is ready; undefined when it decides nothing. */
function faultOf(message: Buffer, leaderOnly: boolean): string | null | undefined {
  const type = String.fromCharCode(message[0] ?? 0);
  if (type === READY_FOR_QUERY) return null;
  const fields = message.subarray(5).toString('latin1').split('\0');
  if (type === PARAMETER_STATUS && leaderOnly && fields[1] === 'on')
    return READ_ONLY[fields[0] as keyof typeof READ_ONLY];
  if (type === ERROR_RESPONSE && fields.includes(`C${CANNOT_CONNECT_NOW}`)) return 'takes no connections now';
  return undefined;
}
