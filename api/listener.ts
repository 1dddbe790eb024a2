import type { IncomingHttpHeaders, Server } from 'node:http';
import net, { BlockList, isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext, Server as TlsServer } from 'node:tls';
import {
  LogController,
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import { newRequestId } from '../runtime/ids';
import { openConnections } from './observe';

export interface TlsFiles {
  /** PEM, leaf first. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** Longest time for a whole request to arrive, headers and body, in milliseconds. */
export const REQUEST_TIMEOUT_MS = 10_000;

// Options of Node's server. Honest requests are under 20 KiB and arrive within a second.
const SERVER = {
  headersTimeout: REQUEST_TIMEOUT_MS,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16 * 1024,
  // `properHttp` checks this, and answers in the contract's form.
  requireHostHeader: false,
} as const;

/** Suites with forward secrecy. Node's own list would allow RSA key exchange. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

export const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: CIPHERS,
  handshakeTimeout: 10_000,
  // Node's own list has no HTTP/1.0: a client that offers nothing else, as curl 7.88 to 8.4 does with -0, would get no connection.
  ALPNProtocols: ['http/1.1', 'http/1.0'],
} as const;

/**
 * How long an idle connection stays open, in milliseconds. A proxy has to close it first, or a call that it sends at that moment fails: Traefik
 * waits 90 s, Caddy 2 minutes, Google's load balancers 10 minutes, Envoy an hour. A client outside may be behind a NAT that forgets it earlier.
 */
const IDLE_MS = { proxied: 3_660_000, direct: 72_000 };

const SHARED = {
  requestTimeout: REQUEST_TIMEOUT_MS,
  /**
   * Closes a connection without traffic, because a client that reads no answers keeps them in memory.
   * It is longer than the slowest answer (10 s).
   */
  connectionTimeout: 20_000,
  // A logger for each request would cost more than the line it usually writes.
  childLoggerFactory: (logger: FastifyBaseLogger) => logger,
  logController: new LogController({ disableRequestLogging: true }),
  // A stopping process finishes what it has accepted, as the contract has no 503.
  return503OnClosing: false,
  // Fastify would answer an undecodable path without our hooks. It becomes an unknown path instead.
  rewriteUrl: ({ url = '/' }: { url?: string | undefined }) => (isReadable(url) ? url : '/unreadable'),
  // Ids of any length reach their route, which answers 404.
  routerOptions: { maxParamLength: SERVER.maxHeaderSize },
};

function isReadable(url: string): boolean {
  if (!url.includes('%')) return true;
  try {
    decodeURI(url.split(/[?#]/, 1)[0] ?? '');
    return true;
  } catch {
    return false;
  }
}

export function listenerOptions(
  tls: TlsFiles | null,
  proxies: readonly string[],
): FastifyHttpOptions<Server> {
  const keepAliveTimeout = proxies.length > 0 ? IDLE_MS.proxied : IDLE_MS.direct;
  if (tls === null) return { ...SHARED, keepAliveTimeout, http: SERVER };
  // Fastify() declares https options in another overload.
  const https = { ...SERVER, cert: tls.cert, key: tls.key, ...TLS };
  return { ...SHARED, keepAliveTimeout, https } as FastifyHttpOptions<Server>;
}

/**
 * Gives a listener with its own TLS another certificate.
 * @throws when key and certificate do not match; then nothing changes
 */
export function useCertificate(server: unknown, { cert, key }: TlsFiles): void {
  if (!(server instanceof TlsServer)) return;
  const context = { cert, key, minVersion: TLS.minVersion, ciphers: TLS.ciphers } as const;
  createSecureContext(context);
  server.setSecureContext(context);
}

/** Most peers whose result is remembered: as many as proxies, unless strangers reach the listener. */
const MOST_PEERS = 1_000;

/** Fastify's `trustProxy` for addresses and CIDRs. Each peer is compared once, as that takes 3 to 15 µs. */
export function trustedProxies(proxies: readonly string[]) {
  if (proxies.length === 0) return false;
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', prefix] = proxy.split('/');
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  const verdicts = new LRUCache<string, boolean>({
    max: MOST_PEERS,
    memoMethod: (address) => isIP(address) !== 0 && list.check(address, familyOf(address)),
  });
  // A closed connection has no peer.
  return (address: string | undefined) => address !== undefined && verdicts.memo(address);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

/**
 * A year of HTTPS, no guessed media types, and no answer in a cache: some, such as nginx's, would give it to a caller with another key. There
 * is no `includeSubDomains`, as those may be others'. Lower case saves Fastify a conversion.
 */
export const SECURITY_HEADERS = {
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const;

export function markAnswers(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
    done();
  });
}

/** Visible ASCII only, because the id is returned in a header and written to logs. */
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/** The id of a request: `X-Request-Id` or `X-Correlation-Id`, if acceptable; else a new one. */
export function requestIdOf({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  for (const sent of [headers['x-request-id'], headers['x-correlation-id']]) {
    if (typeof sent === 'string' && ACCEPTABLE.test(sent)) return sent;
  }
  return newRequestId();
}

// How long idle connections stay open after the close, in ms: closing one could reset a request.
const DRAIN_MS = 1_000;

/** Closes a listener in order: `Connection: close` with every answer, then the rest are closed. */
export function drainable(app: FastifyInstance): () => Promise<void> {
  let draining = false;
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) void reply.header('Connection', 'close');
    done(null, payload);
  });
  return async () => {
    draining = true;
    // http.Server's own close() would also close every idle connection at once.
    net.Server.prototype.close.call(app.server);
    const until = performance.now() + DRAIN_MS;
    while (performance.now() < until && (await openConnections(app)) > 0) await sleep(20);
    await app.close();
  };
}
