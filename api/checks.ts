import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  onRequestHookHandler,
  FastifyReply,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiKeyRecord, hashKey } from '../db/keys';
import type { ServiceCaller, ServiceKeySummary } from '../db/service-keys';
import type { Tenant } from '../domain/tenant';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import type { Catalogue } from './catalogue';
import { ApiError, refused } from './errors';
import type { KeylessLimit } from './limits';

export const cameOverHttps = ({ protocol }: FastifyRequest) => protocol.toLowerCase() === 'https';

// Fastify's `protocol` is that of the socket, or `X-Forwarded-Proto` when the peer is a trusted proxy.
function httpsOnly(logger: FastifyBaseLogger): onRequestHookHandler {
  const repeats = repeatedWarnings(logger);
  return (request, _reply, done) => {
    if (cameOverHttps(request)) return done();
    if (request.headers['x-forwarded-proto'] === 'https')
      repeats.warn(
        { peer: request.socket.remoteAddress },
        'a call was refused as HTTPS is required: its X-Forwarded-Proto is not believed, as TRUSTED_PROXIES does not name its peer',
      );
    done(refused('INVALID_REQUEST', 'HTTPS is required.'));
  };
}

/**
 * Accepts HTTP/1.0, and 1.1 with one Host (RFC 9112 §3.2). Node's own check would not answer in our
 * form, and its parser takes 0.9 and 2.0 too.
 */
export const properHttp: onRequestHookHandler = (request, _reply, done) => {
  const { httpVersion } = request.raw;
  const hosts = timesSent(request.raw, 'host');
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    done(refused('INVALID_REQUEST', 'The request is not HTTP/1.1.'));
  else if (hosts > 1) done(refused('INVALID_REQUEST', 'The Host header is sent twice.'));
  else if (hosts === 0 && httpVersion === '1.1')
    done(refused('INVALID_REQUEST', 'The Host header is missing.'));
  else done();
};

/**
 * Answers for `localhost` and addresses alone. A page of another site whose name leads to this machine (DNS rebinding) sends that name.
 */
export const ownHostOnly: onRequestHookHandler = (request, _reply, done) => {
  const name = (request.headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  if (name.toLowerCase() === 'localhost' || isIP(name) !== 0) done();
  else done(refused('INVALID_REQUEST', 'This host is not served here.'));
};

export function requireHttps(app: FastifyInstance): void {
  app.addHook('onRequest', httpsOnly(app.log));
  app.addHook('onRequest', properHttp);
}

// How often a request has a header. Node keeps the first of two and silently drops the other.
function timesSent({ rawHeaders }: IncomingMessage, header: string): number {
  let sent = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === header.length && name.toLowerCase() === header) sent += 1;
  }
  return sent;
}

export interface Caller extends Tenant {
  readonly keyId: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
    service: ServiceCaller;
  }
}

/** The scheme in any case (RFC 9110 §11.1), spaces, and a key, which may be longer than those of today. */
const BEARER = /^bearer +([A-Za-z0-9_]{8,128})$/i;

/**
 * The key of a request.
 * @throws ApiError when it has none, or more than one
 */
function bearerKey(request: FastifyRequest): string {
  const once = timesSent(request.raw, 'authorization') === 1;
  const key = once ? BEARER.exec(request.headers.authorization ?? '')?.[1] : undefined;
  if (key !== undefined) return key;
  throw refused('UNAUTHENTICATED', 'none');
}

const notValid = () => refused('UNAUTHENTICATED', 'one');

/**
 * Checks the API key. Unknown, inactive, revoked and expired keys and those of inactive partners get
 * the same refusal, which reveals nothing.
 */
export function authenticator(catalogue: Pick<Catalogue, 'findKey'>, onKeyUsed: (keyId: string) => void) {
  function callerOf(record: ApiKeyRecord | undefined): Caller {
    const usable =
      record !== undefined &&
      record.state === 'active' &&
      record.partnerState === 'active' &&
      (record.endsAtMs === null || record.endsAtMs > performance.now());
    if (!usable) throw notValid();
    onKeyUsed(record.keyId);
    return { keyId: record.keyId, partnerId: record.partnerId, environment: record.environment };
  }
  return function authenticate(request: FastifyRequest): Caller | Promise<Caller> {
    const found = catalogue.findKey(hash('sha256', bearerKey(request), 'hex'));
    return found instanceof Promise ? found.then(callerOf) : callerOf(found);
  };
}

type ServiceKeys = ReadonlyMap<string, ServiceKeySummary>;

// Keys remembered as accepted, which are told from guesses without a statement.
const MOST_REMEMBERED = 1_000;
/** Concurrent look-ups of unknown keys that get a statement of their own. */
const MOST_ALONE = 4;
/** How long other unknown keys wait to be looked up in one statement, in milliseconds. */
const GATHER_MS = 250;

/**
 * Builds the check of service keys. They are looked up in Postgres at each request, so that a revocation
 * takes effect at once. Unknown keys from an address above its limit, or many at a time, are looked up
 * together: all guesses cost four statements a second, and a valid key among them is still accepted.
 */
export function serviceAuthenticator(
  findServiceKeys: (hashes: readonly Buffer[]) => Promise<ServiceKeys>,
  keyless: KeylessLimit,
  onKeyUsed: (keyId: string) => void,
) {
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
    onKeyUsed(keyId);
    return { keyId, lender, environment };
  }

  return async function authenticateService(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      request.service = await callerOf(request);
    } catch (error) {
      // Any other error is our own fault, and says nothing about the key.
      if (error instanceof ApiError) await keyless.count(request, reply);
      throw error;
    }
  };
}
