import net from 'node:net';
import type { FastifyInstance } from 'fastify';
import { openConnections } from '../metrics';

/**
 * How long an idle connection is still listened to after the listener has closed, in milliseconds: a request may be on
 * its way, and closing under it would be a reset. Longer than any round trip between a partner and us.
 */
const DRAIN_MS = 1_000;

/**
 * Prepares a listener for an orderly end. The returned function closes it in three steps: no new connections; every
 * answer from now on says `Connection: close`; then the rest is closed.
 */
export function drainable(app: FastifyInstance): () => Promise<void> {
  let draining = false;
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) void reply.header('Connection', 'close');
    done(null, payload);
  });
  return async () => {
    draining = true;
    // http.Server's own close() would also close every idle connection, at once.
    net.Server.prototype.close.call(app.server);
    const until = performance.now() + DRAIN_MS;
    while (performance.now() < until && (await openConnections(app)) > 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await app.close();
  };
}
