import type { FastifyReply } from 'fastify';

/**
 * On every answer: browsers use HTTPS for this host for a year, and take no answer for another type than it has. No
 * `includeSubDomains`: names below this one are not ours to decide about.
 */
export const SECURITY_HEADERS = {
  'Strict-Transport-Security': 'max-age=31536000',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Sets what every answer carries. */
export function markAnswer(reply: FastifyReply, requestId: string): void {
  void reply.header('X-Request-Id', requestId).headers(SECURITY_HEADERS);
}
