import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { ApiError } from '../errors';
import { timesSent } from './times-sent';

export const cameOverHttps = ({ protocol }: FastifyRequest) => protocol.toLowerCase() === 'https';

/**
 * Refuses whatever did not come over HTTPS, before anything else of the request is looked at. Fastify's
 * `protocol` is the socket's own, or `X-Forwarded-Proto` when the peer is a proxy named in `trustProxy`; a header from
 * anybody else counts for nothing.
 */
const httpsOnly: onRequestHookHandler = (request, _reply, done) => {
  if (cameOverHttps(request)) done();
  else done(new ApiError('INVALID_REQUEST', 'HTTPS is required.'));
};

/**
 * HTTP/1.0, or 1.1 with a Host, which it requires (RFC 9112 §3.2), and never two: Node's own check would answer outside
 * the contract's form. Its parser also lets 0.9 and 2.0 pass.
 */
export const properHttp: onRequestHookHandler = (request, _reply, done) => {
  const { httpVersion } = request.raw;
  const hosts = timesSent(request.raw, 'host');
  if (httpVersion !== '1.1' && httpVersion !== '1.0') done(refused('The request is not HTTP/1.1.'));
  else if (hosts > 1) done(refused('The Host header is sent twice.'));
  else if (hosts === 0 && httpVersion === '1.1') done(refused('The Host header is missing.'));
  else done();
};

const refused = (message: string) => new ApiError('INVALID_REQUEST', message);

export function requireHttps(app: FastifyInstance): void {
  app.addHook('onRequest', httpsOnly);
  app.addHook('onRequest', properHttp);
}
