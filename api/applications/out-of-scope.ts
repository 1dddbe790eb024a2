import type { FastifyRequest } from 'fastify';

/**
 * Logs that a service key was used for what belongs to another lender or environment. The caller must not be able to tell
 * such a thing from one that does not exist; operators should know that an integration uses the wrong key, or tries others'
 * ids.
 */
export function warnOutOfScope(
  request: FastifyRequest,
  wanted: Readonly<Record<string, string | null>>,
): void {
  const { keyId, lender, environment } = request.service;
  request.log.warn(
    { requestId: request.id, keyId, keyLender: lender, keyEnvironment: environment, ...wanted },
    'a service key was used for what belongs to another lender or environment: answered 404',
  );
}
