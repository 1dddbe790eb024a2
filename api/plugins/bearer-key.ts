import type { FastifyRequest } from 'fastify';
import { ApiError } from '../errors';
import { timesSent } from './times-sent';

/**
 * Scheme case-insensitive (RFC 9110 §11.1), one or more spaces, then a key. Longer than any key we issue, so that a
 * future format is a matter of the lookup alone.
 */
const BEARER = /^bearer +([A-Za-z0-9_]{8,128})$/i;

/** The key that a request brings. @throws ApiError when it brings none, or more than one. */
export function bearerKey(request: FastifyRequest): string {
  const once = timesSent(request.raw, 'authorization') === 1;
  const key = once ? BEARER.exec(request.headers.authorization ?? '')?.[1] : undefined;
  if (key !== undefined) return key;
  throw new ApiError('UNAUTHENTICATED', 'Send your API key as "Authorization: Bearer <API_KEY>".');
}
