import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';

/**
 * On every answer: browsers use HTTPS for this host for a year, and take no answer for another type than it has. No
 * `includeSubDomains`: names below this one are not ours to decide about. Names of headers are in lower case, as Fastify
 * writes them anyway: else it makes a new string of each for every answer.
 */
export const SECURITY_HEADERS = {
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
} as const;

/** Sets what every answer carries. */
export function markAnswers(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
    done();
  });
}

/** Visible ASCII only: it is echoed in a header and written to logs. */
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/**
 * The id of a request: the caller's `X-Request-Id`, else its `X-Correlation-Id`, when that is 1–128 visible ASCII
 * characters; else a new one.
 */
export function requestIdOf(headers: IncomingHttpHeaders, newId: () => string): string {
  for (const sent of [headers['x-request-id'], headers['x-correlation-id']]) {
    if (typeof sent === 'string' && ACCEPTABLE.test(sent)) return sent;
  }
  return newId();
}
