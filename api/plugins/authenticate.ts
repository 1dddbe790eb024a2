import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Catalogue } from '../catalogue/catalogue';
import { ApiError } from '../errors';

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
 * Scheme case-insensitive (RFC 9110 §11.1), one or more spaces, then a key. Longer than any key we issue, so that a
 * future format is a matter of the lookup alone.
 */
const BEARER = /^bearer +([A-Za-z0-9_]{8,128})$/i;

/**
 * Builds the check of the API key. Every refusal reads the same, so that nothing can be learnt about a key by trying:
 * it is looked up by its SHA-256, and unknown, inactive, revoked, expired and an inactive partner's keys are alike.
 */
export function authenticator(catalogue: Pick<Catalogue, 'findKey'>, now: () => Date) {
  return async function authenticate(request: FastifyRequest): Promise<Caller> {
    const key = bearerKey(request);
    if (key === undefined) {
      throw new ApiError('UNAUTHENTICATED', 'Send your API key as "Authorization: Bearer <API_KEY>".');
    }
    const record = await catalogue.findKey(hash('sha256', key, 'hex'));
    const usable =
      record !== undefined &&
      record.state === 'active' &&
      record.partnerState === 'active' &&
      (record.expiresAt === null || record.expiresAt.getTime() > now().getTime());
    if (!usable) throw new ApiError('UNAUTHENTICATED', 'The API key is not valid.');
    return { keyId: record.keyId, partnerId: record.partnerId, environment: record.environment };
  };
}

function bearerKey(request: FastifyRequest): string | undefined {
  // Node keeps the first of two Authorization headers and drops the other: which one counts must not be a guess.
  const raw = request.raw.rawHeaders;
  let sent = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at];
    if (name?.length === 13 && name.toLowerCase() === 'authorization') sent += 1;
  }
  if (sent !== 1) return undefined;
  return BEARER.exec(request.headers.authorization ?? '')?.[1];
}
