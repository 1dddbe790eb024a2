import { LogController, type FastifyBaseLogger, type FastifyHttpOptions } from 'fastify';
import type { Server } from 'node:http';
import { createSecureContext, Server as TlsServer } from 'node:tls';

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
