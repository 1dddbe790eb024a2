import type { IncomingMessage, InformationEvent, ClientRequest } from 'node:http';
import { request as httpsRequest, Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { DeliveryFault, faultOfOpenConnection } from './connect';

/** Bytes of an answer's status line and headers: Node's own default. */
const MAX_HEAD_BYTES = 16_384;

// Most informational answers (1xx), and bytes of all of them. Servers send one or two.
const MAX_INFORMATIONAL = 20;
const MAX_INFORMATIONAL_BYTES = 16_384;

/** Sent with every request. No compressed answer is asked for, as none is unpacked. */
const ALWAYS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Accept-Encoding': 'identity',
  'User-Agent': 'partner-finance-quote-service/1',
};

export interface ExchangeOptions {
  readonly pool: ConnectionPool;
  readonly open: () => Promise<TLSSocket>;
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly headersMs: number;
  readonly onConnected: (address: string | null) => void;
}

/** A kept connection was closed, which is no failure of the partner. The caller sends again. */
export class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
}

/**
 * Sends one POST and waits for the final status and headers.
 * @throws DeliveryFault, StaleConnection, the signal's reason, or our own faults
 */
export function exchange(options: ExchangeOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { pool, open, hostname, port, path, headers, body, headersMs, onConnected } = options;
  return new Promise((resolve, reject) => {
    const requestOptions: PooledRequestOptions = {
      method: 'POST',
      agent: pool,
      open,
      hostname,
      port,
      path,
      headers: { ...ALWAYS, ...headers, 'Content-Length': body.length },
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    };
    const request = httpsRequest(requestOptions);
    let timer: NodeJS.Timeout | undefined;
    let settled = false;
    const settle = (outcome: () => void) => {
      settled = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      request.socket?.off('data', count);
      outcome();
    };
    const fail = (error: Error) => {
      settle(() => reject(error));
      request.destroy();
    };
    const abort = () => fail(signal.reason as Error);

    let received = 0;
    // Until the final answer, all bytes belong to heads, which the parser has read already. It limits
    // neither the heads of several 1xx together nor the blanks around a value.
    const count = (bytes: Uint8Array) => {
      received += bytes.length;
      if (!settled && received > MAX_INFORMATIONAL_BYTES + MAX_HEAD_BYTES)
        fail(new DeliveryFault('protocol', 'too many bytes before an answer'));
    };
    let informational = 0;
    let informationalBytes = 0;

    signal.addEventListener('abort', abort, { once: true });
    request.once('socket', (socket) => {
      onConnected(socket.remoteAddress ?? null);
      timer = setTimeout(() => fail(new DeliveryFault('timeout', 'no answer in time')), headersMs);
      socket.on('data', count);
    });
    request.on('information', (information) => {
      // After a failure the parser still reads to the end of its chunk of at most 16 KiB.
      if (settled) return;
      informational += 1;
      informationalBytes += headBytes(information);
      if (informational > MAX_INFORMATIONAL || informationalBytes > MAX_INFORMATIONAL_BYTES)
        fail(new DeliveryFault('protocol', 'too many informational answers'));
    });
    request.once('response', (response) => {
      // The parser accepts other major versions.
      if (response.httpVersionMajor !== 1) return fail(new DeliveryFault('protocol', 'not HTTP/1'));
      settle(() => resolve(response));
    });
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      fail(new DeliveryFault('protocol', '101 to a request that asked for no upgrade'));
    });
    // Not `once`, because a connection that breaks after the headers is reported here too.
    request.on('error', (error) => {
      const fault = faultOfOpenConnection(error);
      const stale = request.reusedSocket && fault instanceof DeliveryFault && fault.failure === 'reset';
      settle(() =>
        reject(stale ? new StaleConnection('a kept connection was closed', { cause: error }) : fault),
      );
    });
    request.end(body);
  });
}

/** Bytes of a status line and its headers, without blanks around values. */
function headBytes({ statusMessage, rawHeaders }: InformationEvent): number {
  // "HTTP/1.1 103 " and two line ends; for each header ": " and a line end.
  let bytes = 17 + statusMessage.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** Bytes of an answer that are stored: enough to see what went wrong. */
const KEPT_BYTES = 8 * 1_024;
/** Reading an answer to its end keeps the connection usable. Beyond this a new connection is cheaper. */
const READ_BYTES = 64 * 1_024;

/**
 * Reads the body of an answer for operators. It never fails, and returns what arrived before the
 * connection broke, the time was up or the signal aborted. Nothing is decompressed.
 * @returns at most 8 KiB as text without NUL, which Postgres cannot store
 */
export function readAnswer(response: IncomingMessage, bodyMs: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const kept = Buffer.alloc(KEPT_BYTES);
    let keptLength = 0;
    let readLength = 0;
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(toText(response, kept.subarray(0, keptLength)));
    };
    const stop = () => {
      response.destroy();
      finish();
    };
    const timer = setTimeout(stop, bodyMs);
    response.on('data', (chunk: Buffer) => {
      keptLength += chunk.copy(kept, keptLength);
      readLength += chunk.length;
      if (readLength > READ_BYTES) stop();
    });
    response.once('end', finish);
    response.once('close', finish);
    response.on('error', finish);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

function toText(response: IncomingMessage, bytes: Uint8Array): string {
  const encoding = response.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return '(compressed, though identity was asked for)';
  // `stream` leaves out a character that is cut off at the end.
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '\uFFFD');
}

// Shorter than the 5 s after which many servers close an idle connection.
const IDLE_MS = 4_000;
/** A new address, certificate or rule takes effect within this time even under constant traffic. */
const LONGEST_LIFE_MS = 30_000;
/** As many as the concurrent deliveries to one endpoint. */
const IDLE_PER_HOST = 16;

interface PooledRequestOptions extends RequestOptions {
  readonly open: () => Promise<TLSSocket>;
}

type Provided = (error: Error | null, socket: Duplex) => void;

function destroyThis(this: Duplex): void {
  this.destroy();
}

/**
 * Keeps connections for the next request to a host and port. Each request brings its guarded `open`. No
 * TLS session is resumed, as that would skip the checks.
 */
export class ConnectionPool extends Agent {
  readonly #openedAt = new WeakMap<Duplex, number>();
  readonly #spent = new WeakSet<Duplex>();

  constructor(reuse: boolean) {
    super({ keepAlive: reuse, maxFreeSockets: IDLE_PER_HOST, timeout: IDLE_MS, maxCachedSessions: 0 });
  }

  override createConnection(options: RequestOptions, callback: Provided = () => {}): undefined {
    void this.#provide(options as PooledRequestOptions, callback);
  }

  async #provide({ open }: PooledRequestOptions, provided: Provided): Promise<void> {
    try {
      const socket = await open();
      this.#openedAt.set(socket, performance.now());
      provided(null, socket);
    } catch (error) {
      provided(error as Error, undefined as unknown as Duplex);
    }
  }

  spend(socket: Duplex): void {
    this.#spent.add(socket);
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const age = performance.now() - (this.#openedAt.get(socket) ?? 0);
    if (this.#spent.has(socket) || age > LONGEST_LIFE_MS) return false;
    // Node returns whether to keep it, which its types do not say.
    const kept = (super.keepSocketAlive(socket) as unknown) === true;
    // An endpoint that sends data while no request is under way would be read without any limit.
    if (kept) socket.once('data', destroyThis);
    return kept;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    socket.off('data', destroyThis);
    super.reuseSocket(socket, request);
  }
}
