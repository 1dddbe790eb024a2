import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors';

/**
 * Refuses a body with a `Content-Encoding` other than `identity`, before it is read. Without a body the header means
 * nothing.
 */
export function refuseEncodedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', ({ headers }, _reply, payload, done) => {
    const encoding = headers['content-encoding'];
    if (encoding === undefined || encoding.trim().toLowerCase() === 'identity' || !hasBody(headers)) {
      done(null, payload);
    } else {
      done(
        new ApiError(
          'INVALID_REQUEST',
          'Compressed bodies are not read: send the body without a Content-Encoding header.',
        ),
      );
    }
  });
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
