import type { Server, Socket } from 'node:net';
import { sourceOf } from './source-address';

/**
 * Most connections of one source address that have not brought a call with a valid key. A hundred servers of partners may
 * share an address, and none needs five at a time before its first call; with what Node keeps for each, 500 are some 30 MB.
 */
export const MOST_UNPROVEN_CONNECTIONS = 500;

/**
 * Bounds the connections that one address holds open, for a listener without a proxy in front. One too many closes the
 * oldest that has brought no valid key, never the new one: so a flood closes its own, and a caller that shares the address
 * gets through. Connections that have brought one are bounded by the limit per key.
 */
export function limitConnections(server: Server, onClosed: () => void) {
  const sources = new Map<string, Map<string, Socket>>();
  const proven = new WeakSet<Socket>();

  function forget(source: string, peer: string): void {
    const open = sources.get(source);
    open?.delete(peer);
    if (open?.size === 0) sources.delete(source);
  }
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress);
    const peer = peerOf(socket);
    const open = sources.get(source) ?? new Map<string, Socket>();
    sources.set(source, open.set(peer, socket));
    socket.once('close', () => open.get(peer) === socket && forget(source, peer));
    if (open.size <= MOST_UNPROVEN_CONNECTIONS) return;
    const [oldest] = open;
    if (oldest === undefined) return;
    open.delete(oldest[0]);
    onClosed();
    oldest[1].destroy();
  });
  return {
    /** A call with a valid key came over this connection: it counts no longer. */
    proven(socket: Socket): void {
      // The socket of a request is that of TLS, and the one above lies beneath it: they share their peer.
      if (proven.has(socket)) return;
      proven.add(socket);
      forget(sourceOf(socket.remoteAddress), peerOf(socket));
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress}/${remotePort}`;
