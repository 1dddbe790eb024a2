import net from 'node:net';
import {
  LogController,
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Server, IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { createSecureContext, Server as TlsServer } from 'node:tls';
import { openConnections } from './observe';

export interface TlsFiles {
  /** PEM, leaf first. */
  readonly cert: string | Buffer;
  /** PEM. */
  readonly key: string | Buffer;
}

/** Longest time for a whole request to arrive, headers and body, in milliseconds. */
export const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Server timeouts, decided here for every listener. An honest request is under 20 KiB and arrives in well under a
 * second; what takes longer holds a socket for somebody else's benefit.
 */
const TIMEOUTS = {
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: REQUEST_TIMEOUT_MS,
  /** Idle keep-alive connection; longer than the 60 s at which common proxies close theirs, so that they close first. */
  keepAliveTimeout: 72_000,
  /**
   * Nothing sent and nothing taken of an answer for so long (once or twice that, as Node looks): who asks for pages and reads none
   * would hold them in memory for ever. Longer than any answer is waited for (a test notification: 10 s).
   */
  connectionTimeout: 20_000,
  /** How often the limits of a request are looked at. */
  connectionsCheckingInterval: 2_000,
  /** Bytes of request line and headers. */
  maxHeaderSize: 16 * 1024,
  // Checked by us, to answer in the contract's form.
  requireHostHeader: false,
} as const;

/** Suites with forward secrecy, whatever the certificate: Node's own list would agree to RSA key exchange with an RSA one. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

export const TLS = { minVersion: 'TLSv1.2', ciphers: CIPHERS, handshakeTimeout: 10_000 } as const;

const SHARED = {
  // A logger for each request would cost more than the line it usually writes: who logs besides names the request itself.
  childLoggerFactory: (logger: FastifyBaseLogger) => logger,
  // Our line (plugins/observe-requests) says in one what Fastify's own two say.
  logController: new LogController({ disableRequestLogging: true }),
  // A stopping process finishes what it has accepted; the contract knows no 503.
  return503OnClosing: false,
  // What the router cannot read would be answered without hooks, and without what a proxy says of the request: it is a path like others
  // that lead nowhere. Ids of any length reach their route, which says 404.
  rewriteUrl: ({ url = '/' }: { url?: string | undefined }) => (isReadable(url) ? url : '/unreadable'),
  routerOptions: { maxParamLength: TIMEOUTS.maxHeaderSize },
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

/** Fastify's options for a listener with or without its own TLS (1.2 and later). */
export function listenerOptions(tls: TlsFiles | null): FastifyHttpOptions<Server> {
  const { requestTimeout, keepAliveTimeout, connectionTimeout, ...server } = TIMEOUTS;
  const timeouts = { ...SHARED, requestTimeout, keepAliveTimeout, connectionTimeout };
  if (tls === null) return { ...timeouts, http: server };
  // The type of https options lies on another overload of Fastify(); the server is an https.Server then.
  const https = { ...server, cert: tls.cert, key: tls.key, ...TLS };
  return { ...timeouts, https } as FastifyHttpOptions<Server>;
}

/** Gives a listener with its own TLS another certificate. @throws when key and certificate do not fit; then nothing has changed. */
export function useCertificate(server: unknown, { cert, key }: TlsFiles): void {
  if (!(server instanceof TlsServer)) return;
  const context = { cert, key, minVersion: TLS.minVersion, ciphers: TLS.ciphers } as const;
  createSecureContext(context);
  server.setSecureContext(context);
}

/** Most peers whose verdict is remembered; there are as many as proxies, unless strangers reach the listener. */
const MOST_PEERS = 1_000;

/**
 * Fastify's `trustProxy` for addresses and CIDRs that the configuration has checked. Fastify's own comparison takes 3 to
 * 15 µs of each request, so each peer is compared once.
 */
export function trustedProxies(
  proxies: readonly string[],
): false | ((address: string | undefined) => boolean) {
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
  // A connection that has ended has no peer any more.
  return (address) => address !== undefined && verdicts.memo(address);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

/**
 * On every answer: browsers use HTTPS for this host for a year, and take no answer for another type than it has. No
 * `includeSubDomains`: names below this one are not ours to decide about. Names of headers are in lower case, as Fastify
 * writes them anyway: else it makes a new string of each for every answer.
 */
export const SECURITY_HEADERS = {
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
} as const;

/** Sets what every answer carries. */
export function markAnswers(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
    done();
  });
}

/** Visible ASCII only: it is echoed in a header and written to logs. */
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/**
 * The id of a request: the caller's `X-Request-Id`, else its `X-Correlation-Id`, when that is 1–128 visible ASCII
 * characters; else a new one.
 */
export function requestIdOf(headers: IncomingHttpHeaders, newId: () => string): string {
  for (const sent of [headers['x-request-id'], headers['x-correlation-id']]) {
    if (typeof sent === 'string' && ACCEPTABLE.test(sent)) return sent;
  }
  return newId();
}

/**
 * How long an idle connection is still listened to after the listener has closed, in milliseconds: a request may be on
 * its way, and closing under it would be a reset. Longer than any round trip between a partner and us.
 */
const DRAIN_MS = 1_000;

/**
 * Prepares a listener for an orderly end. The returned function closes it in three steps: no new connections; every
 * answer from now on says `Connection: close`; then the rest is closed.
 */
export function drainable(app: FastifyInstance): () => Promise<void> {
  let draining = false;
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (draining) void reply.header('Connection', 'close');
    done(null, payload);
  });
  return async () => {
    draining = true;
    // http.Server's own close() would also close every idle connection, at once.
    net.Server.prototype.close.call(app.server);
    const until = performance.now() + DRAIN_MS;
    while (performance.now() < until && (await openConnections(app)) > 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await app.close();
  };
}
