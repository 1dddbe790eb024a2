import type { FastifyInstance, FastifyRequest, onRequestHookHandler, FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiKeyRecord } from '../db/keys/api-keys';
import { hashKey } from '../db/keys/key';
import type { ServiceCaller, ServiceKeySummary } from '../db/keys/service-keys';
import type { Tenant } from '../domain/tenant';
import type { Catalogue } from './catalogue';
import { ApiError } from './errors';
import type { KeylessLimit } from './limits';

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

/**
 * How often a request brings a header of this (lower-case) name. Node keeps the first of two and drops the other: which
 * one counts must not be a guess.
 */
export function timesSent({ rawHeaders }: IncomingMessage, header: string): number {
  let sent = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === header.length && name.toLowerCase() === header) sent += 1;
  }
  return sent;
}

/** Whose call this is. */
export interface Caller extends Tenant {
  readonly keyId: string;
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

/** Service keys by their SHA-256 in hex; absent: there is none. */
type ServiceKeys = ReadonlyMap<string, ServiceKeySummary>;

interface ServiceAuthenticatorDeps {
  /** The service keys with these SHA-256, whatever their state. */
  readonly findServiceKeys: (hashes: readonly Buffer[]) => Promise<ServiceKeys>;
  readonly keyless: KeylessLimit;
}

/** Keys that were accepted lately, more than there are integrations: a guess is told from them without a statement. */
const MOST_REMEMBERED = 1_000;
/** Look-ups of unknown keys that have a statement of their own, at a time. */
const MOST_ALONE = 4;
/** How long all other unknown keys wait to be looked up in one statement, in milliseconds. */
const GATHER_MS = 250;

/**
 * Builds the check of service keys. They are looked up in Postgres at each request, so that one that is revoked works
 * nowhere any more. Unknown keys from an address above its limit, and many at a time, are looked up together: guesses cost four
 * statements a second, however many there are, and a valid key among them is accepted.
 */
export function serviceAuthenticator({ findServiceKeys, keyless }: ServiceAuthenticatorDeps) {
  const accepted = new LRUCache<string, true>({ max: MOST_REMEMBERED });
  let alone = 0;
  let gathering: { readonly hashes: Buffer[]; readonly found: Promise<ServiceKeys> } | null = null;

  function findTogether(hash: Buffer): Promise<ServiceKeys> {
    if (gathering === null) {
      const hashes: Buffer[] = [];
      const found = sleep(GATHER_MS).then(() => {
        gathering = null;
        return findServiceKeys(hashes);
      });
      gathering = { hashes, found };
    }
    gathering.hashes.push(hash);
    return gathering.found;
  }

  async function find(request: FastifyRequest, hash: Buffer, id: string): Promise<ServiceKeys> {
    if (accepted.has(id)) return findServiceKeys([hash]);
    if (alone >= MOST_ALONE || (await keyless.isReached(request))) return findTogether(hash);
    alone += 1;
    try {
      return await findServiceKeys([hash]);
    } finally {
      alone -= 1;
    }
  }

  async function callerOf(request: FastifyRequest): Promise<ServiceCaller> {
    const hash = hashKey(bearerKey(request));
    const id = hash.toString('hex');
    const key = (await find(request, hash, id)).get(id);
    if (key === undefined || key.state !== 'active' || key.expired) {
      accepted.delete(id);
      throw notValid();
    }
    accepted.set(id, true);
    const { keyId, lender, environment } = key;
    return { keyId, lender, environment };
  }

  return async function authenticateService(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      request.service = await callerOf(request);
    } catch (error) {
      // Not of our own faults: those say nothing of the key.
      if (error instanceof ApiError) await keyless.count(request, reply);
      throw error;
    }
  };
}
