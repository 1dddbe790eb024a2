import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { ApiKeyRecord } from '../../db/keys/api-keys';
import { hashKey } from '../../db/keys/key';
import type { ServiceCaller, ServiceKeySummary } from '../../db/keys/service-keys';
import type { Catalogue } from '../catalogue/catalogue';
import { ApiError } from '../errors';
import { timesSent } from './times-sent';

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
    /** The same on the internal listener, for a service key. */
    service: ServiceCaller;
  }
}

/**
 * Scheme case-insensitive (RFC 9110 §11.1), one or more spaces, then a key. Longer than any key we issue, so that a
 * future format is a matter of the lookup alone.
 */
const BEARER = /^bearer +([A-Za-z0-9_]{8,128})$/i;

/** The key that a request brings. @throws ApiError when it brings none, or more than one. */
function bearerKey(request: FastifyRequest): string {
  const once = timesSent(request.raw, 'authorization') === 1;
  const key = once ? BEARER.exec(request.headers.authorization ?? '')?.[1] : undefined;
  if (key !== undefined) return key;
  throw new ApiError('UNAUTHENTICATED', 'Send your API key as "Authorization: Bearer <API_KEY>".');
}

const notValid = () => new ApiError('UNAUTHENTICATED', 'The API key is not valid.');

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
    if (!usable) throw notValid();
    return { keyId: record.keyId, partnerId: record.partnerId, environment: record.environment };
  }
  return function authenticate(request: FastifyRequest): Caller | Promise<Caller> {
    const found = catalogue.findKey(hash('sha256', bearerKey(request), 'hex'));
    return found instanceof Promise ? found.then(callerOf) : callerOf(found);
  };
}

/**
 * Builds the check of service keys. They are looked up in Postgres at each request, so that one that is revoked works
 * nowhere any more.
 */
export function serviceAuthenticator(findKey: (hash: Buffer) => Promise<ServiceKeySummary | null>) {
  return async function authenticateService(request: FastifyRequest): Promise<void> {
    const key = await findKey(hashKey(bearerKey(request)));
    if (key === null || key.state !== 'active' || key.expired) throw notValid();
    const { keyId, lender, environment } = key;
    request.service = { keyId, lender, environment };
  };
}
