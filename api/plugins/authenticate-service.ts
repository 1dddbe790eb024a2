import type { FastifyRequest } from 'fastify';
import type { ServiceCaller, ServiceKeySummary } from '../../db/keys/service-keys';
import { hashKey } from '../../db/keys/key';
import { ApiError } from '../errors';
import { bearerKey } from './bearer-key';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on the internal listener's keyed routes once the service key has been accepted. */
    service: ServiceCaller;
  }
}

/**
 * Builds the check of service keys. They are looked up in Postgres by their SHA-256 at each request, so that one that is
 * revoked works nowhere any more. Every refusal of a key reads the same.
 */
export function serviceAuthenticator(findKey: (hash: Buffer) => Promise<ServiceKeySummary | null>) {
  return async function authenticateService(request: FastifyRequest): Promise<void> {
    const key = await findKey(hashKey(bearerKey(request)));
    if (key === null || key.state !== 'active' || key.expired) {
      throw new ApiError('UNAUTHENTICATED', 'The API key is not valid.');
    }
    const { keyId, lender, environment } = key;
    request.service = { keyId, lender, environment };
  };
}
