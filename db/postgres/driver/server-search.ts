import type net from 'node:net';
import type { Duplex } from 'node:stream';
import { serverName, type Server, type Servers } from './servers';
import { watchStartup } from './startup';

interface ServerSearch extends Pick<Servers, 'servers' | 'leaderOnly'> {
  /** TCP, and TLS where it is wanted. */
  readonly connect: (server: Server) => Promise<net.Socket>;
  /** A socket that fails with this error as soon as it is used. */
  readonly failed: (error: Error) => Duplex;
  /** Longest that a session may take to be ready, in milliseconds. A frozen server accepts connections and says nothing. */
  readonly readyMs: number;
}

/**
 * For one pool: opens connections to the server that takes writes, and remembers which it was.
 *
 * Each connection is judged by what its server says of itself as the session starts. postgres.js keeps a statement whose connection closes
 * without an error before it is ready, and connects again: so each server is asked once for it. While none takes writes, every further
 * statement fails with an error, as its caller has a limit of its own for how long it waits.
 */
export function searchServer(options: ServerSearch): () => Promise<Duplex> {
  const { servers, leaderOnly, connect, failed, readyMs } = options;
  let at = 0;
  /** Servers that would not do, since the last that did. */
  let misses = 0;

  /** Others may have moved on from it already. */
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
      // The server has closed it, and postgres.js would connect again and again.
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
