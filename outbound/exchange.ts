import { validateHeaderValue, type IncomingMessage, type InformationEvent } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setImmediate as nextRound } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { SENDS_PER_FAST_ENDPOINT } from '../domain/delivery-now';
import { startDeadline } from '../timing/timing';
import { DeliveryFault, faultOfOpenConnection, unreadable } from './faults';

/** Bytes of an answer's status line and headers: Node's own default. */
const MAX_HEAD_BYTES = 16_384;

// Most informational answers (1xx), and bytes of all of them. Servers send one or two.
const MAX_INFORMATIONAL = 20;
const MAX_INFORMATIONAL_BYTES = 16_384;

/**
 * Sent with every request. No compressed answer is asked for, as none is unpacked. Firewalls count a request without
 * Accept as suspect (rule 920300 of the OWASP rules), and older ones refuse it.
 */
const ALWAYS = {
  'Content-Type': 'application/json; charset=utf-8',
  Accept: '*/*',
  'Accept-Encoding': 'identity',
  'User-Agent': 'partner-finance-quote-service/1',
};

export interface ExchangeOptions {
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly headersMs: number;
  /** Whether the connection may be used again; if not, the request says so. */
  readonly keep: boolean;
}

export interface Answer {
  readonly connection: Connection;
  readonly response: IncomingMessage;
  /** How many bytes came behind the answer, once it was read to its end. Null: it does not state its length. */
  readonly bytesBehind: () => number | null;
}

/**
 * Sends one POST on a quiet connection, and waits for the final status and headers. After a failure the
 * connection is closed.
 * @throws DeliveryFault, the signal's reason, or our own faults
 */
export function exchange(
  connection: Connection,
  { hostname, port, path, headers, body, headersMs, keep }: ExchangeOptions,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { socket } = connection;
    const request = httpsRequest({
      method: 'POST',
      createConnection: () => socket,
      hostname,
      port,
      // Where no agent says it, Node takes every port for an unusual one and adds it to Host.
      defaultPort: 443,
      path,
      headers: { ...ALWAYS, ...headers, 'Content-Length': body.length },
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    });
    request.setHeader('Connection', keep ? 'keep-alive' : 'close');
    let settled = false;
    const settle = (outcome: () => void) => {
      settled = true;
      stopDeadline();
      signal.removeEventListener('abort', abort);
      outcome();
    };
    const fail = (error: Error) => {
      settle(() => reject(error));
      request.destroy();
      socket.destroy();
    };
    const abort = () => fail(signal.reason as Error);
    const stopDeadline = startDeadline(headersMs, () =>
      fail(new DeliveryFault('timeout', 'no answer in time')),
    );
    signal.addEventListener('abort', abort, { once: true });

    let heads: Buffer = Buffer.alloc(0);
    let tail: Buffer = heads;
    let received = 0;
    let answered = false;
    let brokenBehind = false;
    connection.read((bytes) => {
      // Until the final answer, all bytes belong to heads. The parser limits neither the heads of several
      // 1xx together nor the blanks around a value.
      if (!answered && received > MAX_INFORMATIONAL_BYTES + MAX_HEAD_BYTES)
        return fail(unreadable('informational'));
      if (!answered) heads = Buffer.concat([heads, bytes]);
      tail = Buffer.concat([tail, bytes.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      received += bytes.length;
    });
    let informational = 0;
    let informationalBytes = 0;
    request.on('information', (information) => {
      // After a failure the parser still reads to the end of its chunk of at most 16 KiB.
      if (settled) return;
      informational += 1;
      informationalBytes += headBytes(information);
      if (informational > MAX_INFORMATIONAL || informationalBytes > MAX_INFORMATIONAL_BYTES)
        fail(unreadable('informational'));
    });

    async function onResponse(response: IncomingMessage): Promise<void> {
      answered = true;
      // The end of a write on TLS is reported one round late, and not at all where what comes behind the
      // head cannot be parsed (Node closes the connection at once).
      if (!request.writableFinished) await nextRound();
      if (!request.writableFinished && !brokenBehind) {
        connection.reportSurplus();
        return fail(unreadable('early'));
      }
      const { isHttp1, end } = finalHead(heads, informational);
      if (!isHttp1) return fail(unreadable('version'));
      const bytesBehind = () => {
        const length = bodyLength(response);
        if (length === 'chunked') return CHUNKED_END.test(tail.toString('latin1')) ? 0 : 1;
        return length === null ? null : received - end - length;
      };
      settle(() => resolve({ connection, response, bytesBehind }));
    }
    request.once('response', (response) => void onResponse(response).catch(fail));
    request.once('upgrade', () => fail(unreadable('upgrade')));
    request.on('error', (error) => {
      // What comes behind the final head does not change its status.
      if (answered) brokenBehind = true;
      else fail(faultOfOpenConnection(error));
    });
    request.end(body);
  });
}

/** @throws our own fault, before anything is opened, for a header that cannot be sent */
export function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
}

const HEAD_END = '\r\n\r\n';
const TAIL_BYTES = 6;
/** The end of a chunked body, without a blank line behind it. */
const CHUNKED_END = /(?<!\r\n)\r\n\r\n$/;

/** The final head in the bytes of an answer. The parser accepts other versions too, and RTSP. */
function finalHead(bytes: Buffer, informational: number): { isHttp1: boolean; end: number } {
  let [start, end] = [0, 0];
  for (let head = 0; head <= informational; head += 1) {
    // The parser passes over line ends before a head.
    for (start = end; bytes[start] === 13 || bytes[start] === 10;) start += 1;
    end = bytes.indexOf(HEAD_END, start) + HEAD_END.length;
  }
  return { isHttp1: bytes.toString('latin1', start, start + 7) === 'HTTP/1.', end };
}

/** Bytes of a body by its head. Null: to the end of the connection, or against the meaning of its status. */
function bodyLength({ statusCode, headers }: IncomingMessage): number | 'chunked' | null {
  if (statusCode === 204 || statusCode === 304) return 0;
  const { 'transfer-encoding': coding, 'content-length': length } = headers;
  if (coding !== undefined) return /(^|,)\s*chunked\s*$/i.test(coding) ? 'chunked' : null;
  return length === undefined || (statusCode === 205 && length !== '0') ? null : Number(length);
}

/** Bytes of a status line and its headers, without blanks around values. */
function headBytes({ statusMessage, rawHeaders }: InformationEvent): number {
  // "HTTP/1.1 103 " and two line ends; for each header ": " and a line end.
  let bytes = 17 + statusMessage.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** How long a connection rests after its first answer; after the nth, a part of it … */
const FIRST_REST_MS = 250;
/** … but no less. A server that answers twice does so within some milliseconds. */
const LEAST_REST_MS = 25;
// Shorter than the 5 s after which many servers close an idle connection.
const IDLE_MS = 4_000;
/** A new address, certificate or rule takes effect within this time even under constant traffic. */
const LONGEST_LIFE_MS = 30_000;
/** Beyond this a request that waits on a new connection may wait for the server to be free of a kept one. */
const PATIENCE_MS = 2_000;
/** A connection for each attempt, after surplus bytes, which Postgres notes for all workers, or no answer on a kept one. */
const ALONE_MS = 86_400_000;

/** A server that waits for a request may say that it waits no longer (RFC 9110, 15.5.9). */
const WAITS_NO_LONGER = /^HTTP\/1\.[01] 408/;

/** A connection to an endpoint. Bytes that come while it has no request are surplus, and close it. */
export class Connection {
  readonly #openedMs = performance.now();
  #answers = 0;
  #restsUntilMs = 0;
  #reader: ((bytes: Buffer) => void) | null = null;
  #onIdleEnd: () => void = () => undefined;

  /** @param reportSurplus called when the endpoint has sent bytes that belong to no request */
  constructor(
    readonly socket: TLSSocket,
    readonly origin: string,
    readonly reportSurplus: () => void,
  ) {
    // The parser of a request listens after this.
    socket.on('data', (bytes: Buffer) => {
      if (this.#reader !== null) return this.#reader(bytes);
      socket.destroy();
      if (!WAITS_NO_LONGER.test(bytes.toString('latin1', 0, 12))) reportSurplus();
    });
    socket.on('timeout', () => socket.destroy());
    socket.once('close', () => this.#onIdleEnd());
  }

  read(reader: (bytes: Buffer) => void): void {
    this.#reader = reader;
  }

  /** Begins the rest after an answer. @param onEnd called if it is closed before its next request */
  rest(onEnd: () => void): void {
    this.#reader = null;
    this.#onIdleEnd = onEnd;
    this.#answers += 1;
    const restMs = Math.max(FIRST_REST_MS / this.#answers, LEAST_REST_MS);
    this.#restsUntilMs = performance.now() + restMs;
    this.socket.setTimeout(IDLE_MS).unref();
  }

  get isOpen(): boolean {
    return this.socket.writable && !this.socket.destroyed;
  }

  get hasRested(): boolean {
    return this.isOpen && performance.now() >= this.#restsUntilMs;
  }

  get isOld(): boolean {
    return performance.now() - this.#openedMs > LONGEST_LIFE_MS;
  }

  /** Reads all that has arrived by now. @returns whether a request may follow */
  async isQuiet(): Promise<boolean> {
    this.#onIdleEnd = () => undefined;
    this.socket.setTimeout(0).ref();
    // What is there now has been read when the round after this one ends.
    await nextRound();
    await nextRound();
    return this.isOpen;
  }
}

/**
 * Keeps connections for the next request to the same endpoint, and to no other one at its host. No TLS
 * session is resumed, as that would skip the checks.
 */
export class ConnectionPool {
  readonly #idle = new Map<string, Set<Connection>>();
  readonly #alone = new Map<string, number>();
  /** Endpoints that have answered on a kept connection. */
  readonly #reused = new Set<string>();
  /** For each endpoint, requests that have waited long on new connections. */
  readonly #waiting = new Map<string, number>();

  /** Whether connections to an endpoint may be used again. */
  keeps(endpointId: string): boolean {
    const untilMs = this.#alone.get(endpointId) ?? 0;
    if (untilMs <= performance.now()) this.#alone.delete(endpointId);
    return !this.#alone.has(endpointId) && !this.#waiting.has(endpointId);
  }

  /**
   * Begins the wait for an answer on a new connection. After two seconds idle connections to the endpoint are closed, and none is kept until the
   * wait ends: a server with a process or thread for each connection, such as uWSGI, may have no other left than those of the kept ones.
   * @returns ends the wait
   */
  startWait(endpointId: string): () => void {
    let late = false;
    const stopDeadline = startDeadline(PATIENCE_MS, () => {
      late = true;
      this.#waiting.set(endpointId, (this.#waiting.get(endpointId) ?? 0) + 1);
      this.#closeIdle(endpointId);
    });
    return () => {
      stopDeadline();
      if (!late) return;
      const others = (this.#waiting.get(endpointId) ?? 1) - 1;
      if (others > 0) this.#waiting.set(endpointId, others);
      else this.#waiting.delete(endpointId);
    };
  }

  /** Notes an answer on a kept connection. */
  answeredAgain(endpointId: string): void {
    this.#reused.add(endpointId);
  }

  /**
   * Notes that no answer came on a kept connection. Some servers answer one request of a connection and never read the next, such as Java's
   * HttpServer when an exchange is not closed. Those that have answered a second one hang, or cannot be reached.
   */
  wasSilent(endpointId: string): void {
    if (!this.#reused.has(endpointId)) this.leaveAlone(endpointId);
  }

  /** Keeps no connection to an endpoint for a day, and closes the idle ones. */
  leaveAlone(endpointId: string): void {
    this.#alone.set(endpointId, performance.now() + ALONE_MS);
    this.#closeIdle(endpointId);
  }

  #closeIdle(endpointId: string): void {
    for (const connection of this.#idle.get(endpointId) ?? []) connection.socket.destroy();
  }

  /** @returns of the connections that have rested the one that was used last; null: open another */
  async take(endpointId: string, origin: string): Promise<Connection | null> {
    const idle = [...(this.#idle.get(endpointId) ?? [])];
    const rested = idle.findLast((connection) => connection.hasRested && connection.origin === origin);
    if (rested === undefined) return null;
    this.#remove(endpointId, rested);
    return (await rested.isQuiet()) ? rested : null;
  }

  /** Lets a connection rest for the next request, or closes it. */
  keep(endpointId: string, connection: Connection): void {
    if (!connection.isOpen) return;
    const idle = this.#idle.get(endpointId) ?? new Set();
    if (idle.size >= SENDS_PER_FAST_ENDPOINT || connection.isOld || !this.keeps(endpointId))
      return void connection.socket.destroy();
    this.#idle.set(endpointId, idle.add(connection));
    connection.rest(() => this.#remove(endpointId, connection));
  }

  #remove(endpointId: string, connection: Connection): void {
    const idle = this.#idle.get(endpointId);
    idle?.delete(connection);
    if (idle?.size === 0) this.#idle.delete(endpointId);
  }

  close(): void {
    for (const connection of [...this.#idle.values()].flatMap((idle) => [...idle]))
      connection.socket.destroy();
  }
}
