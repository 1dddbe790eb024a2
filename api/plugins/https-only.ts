import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { ApiError } from '../errors';

/**
 * Refuses whatever did not come over HTTPS (spec §5.3), before anything else of the request is looked at. Fastify's
 * `protocol` is the socket's own, or `X-Forwarded-Proto` when the peer is a proxy named in `trustProxy`; a header from
 * anybody else counts for nothing.
 */
export const httpsOnly: onRequestHookHandler = (request, _reply, done) => {
  if (request.protocol.toLowerCase() === 'https') done();
  else done(new ApiError('INVALID_REQUEST', 'HTTPS is required.'));
};

/** HTTP/1.1 requires a Host; Node's own check would answer outside the contract's form. */
export const hostRequired: onRequestHookHandler = (request, _reply, done) => {
  const { headers, httpVersion } = request.raw;
  if (headers.host !== undefined || headers[':authority'] !== undefined || httpVersion === '1.0') done();
  else done(new ApiError('INVALID_REQUEST', 'The Host header is missing.'));
};

/** Adds both checks to every route and to the 404 handler. */
export function requireHttps(app: FastifyInstance): void {
  app.addHook('onRequest', httpsOnly);
  app.addHook('onRequest', hostRequired);
}
