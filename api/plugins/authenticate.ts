import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { ApiKeyRecord } from '../../db/keys/api-keys';
import type { Catalogue } from '../catalogue/catalogue';
import { ApiError } from '../errors';
import { bearerKey } from './bearer-key';

/** Whose call this is. */
export interface Caller {
  readonly keyId: string;
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on keyed routes once the key has been accepted. */
    caller: Caller;
  }
}

/**
 * Builds the check of the API key. Every refusal reads the same, so that nothing can be learnt about a key by trying:
 * it is looked up by its SHA-256, and unknown, inactive, revoked, expired and an inactive partner's keys are alike.
 */
export function authenticator(catalogue: Pick<Catalogue, 'findKey'>, now: () => Date) {
  function callerOf(record: ApiKeyRecord | undefined): Caller {
    const usable =
      record !== undefined &&
      record.state === 'active' &&
      record.partnerState === 'active' &&
      (record.expiresAt === null || record.expiresAt.getTime() > now().getTime());
    if (!usable) throw new ApiError('UNAUTHENTICATED', 'The API key is not valid.');
    return { keyId: record.keyId, partnerId: record.partnerId, environment: record.environment };
  }
  return function authenticate(request: FastifyRequest): Caller | Promise<Caller> {
    const found = catalogue.findKey(hash('sha256', bearerKey(request), 'hex'));
    return found instanceof Promise ? found.then(callerOf) : callerOf(found);
  };
}
