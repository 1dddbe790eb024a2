import { createHmac, createPrivateKey, sign } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createSecureContext, rootCertificates } from 'node:tls';
import {
  outcomeOfStatus,
  parseHttpDate,
  parseRetryAfter,
  type SentWebhook,
} from '../domain/delivery-outcome';
import { checkWebhookUrl, type HmacSha256, type SignEd25519, type WebhookUrlCheck } from '../domain/webhook';
import { startDeadline } from '../timing/timing';
import { createAddressGuard, openConnection } from './connect';
import { checkHeaders, Connection, ConnectionPool, exchange, type Answer } from './exchange';
import { codeOf, DeliveryFault, faultOfOpenConnection, unreadable } from './faults';
import { explainNames, resolveTarget, type AddressResolver } from './names';

// In milliseconds. The outcome is decided before the answer's body is read.
const SEND_TIMEOUTS = { dnsMs: 5_000, connectMs: 5_000, headersMs: 15_000, bodyMs: 5_000, totalMs: 20_000 };

export interface SenderOptions {
  /** Private targets that are allowed; none in production. */
  readonly allowedCidrs: readonly string[];
  /** Ports allowed besides 443; none in production. */
  readonly allowedPorts: readonly number[];
  readonly resolver: AddressResolver;
  /** Names of the embedded stack, in lower case, that are not looked up. Their addresses are guarded too. */
  readonly hosts?: ReadonlyMap<string, readonly string[]>;
  /** Authorities trusted besides the well-known ones, PEM. */
  readonly ca?: string;
  readonly timeouts?: Partial<typeof SEND_TIMEOUTS>;
  readonly now: () => number;
}

interface SendInput {
  /** Connections are kept for this endpoint alone. */
  readonly endpointId: string;
  /** Whether it gets a connection for this request alone. */
  readonly alone: boolean;
  /** Called when the endpoint has sent bytes that belong to no request. From then on it gets none that was used. */
  readonly onSurplus: () => void;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent byte for byte as UTF-8. */
  readonly body: string;
}

export interface Sender {
  /**
   * POSTs once. A partner's failure is an outcome.
   * @throws our own faults, such as no DNS server
   */
  readonly send: (input: SendInput) => Promise<SentWebhook>;
  close(): void;
}

/** Makes a sender of webhooks: guarded and bounded POSTs on HTTP/1.1 and TLS 1.2 or later. */
export function createSender(options: SenderOptions): Sender {
  const { allowedPorts, resolver, hosts = new Map(), now } = options;
  const timeouts = { ...SEND_TIMEOUTS, ...options.timeouts };
  const isAllowed = createAddressGuard(options.allowedCidrs);
  const secureContext = createSecureContext({
    minVersion: 'TLSv1.2',
    ...(options.ca !== undefined && { ca: [...rootCertificates, options.ca] }),
  });
  const rules = { allowedPorts, allowedNames: new Set(hosts.keys()) };
  const pool = new ConnectionPool();

  async function post(
    input: SendInput,
    onResolved: (addresses: readonly string[]) => void,
    onConnected: (address: string | null) => void,
    signal: AbortSignal,
  ): Promise<Answer> {
    // Checked at registration, and again here because rules and rows change.
    const target = checkWebhookUrl(input.url, rules);
    if (!target.ok) throw new DeliveryFault('blocked_address', target.reason);
    checkHeaders(input.headers);
    const { hostname, port } = target;
    const { endpointId, onSurplus, headers } = input;
    const { connectMs, dnsMs, headersMs } = timeouts;
    const { pathname: path, origin } = new URL(target.url);
    const keep = !input.alone && pool.keeps(endpointId);
    const body = Buffer.from(input.body, 'utf8');
    const request = { hostname, port, path, headers, body, headersMs, keep };
    const kept = keep ? await pool.take(endpointId, origin) : null;
    if (kept !== null) {
      onConnected(kept.socket.remoteAddress ?? null);
      const answer = await exchange(kept, request, signal).catch((error: unknown) => {
        if (error instanceof DeliveryFault && error.failure === 'timeout') pool.wasSilent(endpointId);
        return notOfThePartner(error);
      });
      if (answer !== null && !mayBelongToAnother(answer.response)) {
        pool.answeredAgain(endpointId);
        return answer;
      }
      kept.socket.destroy();
      onConnected(null);
    }
    const endWait = pool.startWait(endpointId);
    try {
      const addresses = await resolveTarget(hostname, { resolver, hosts, isAllowed, dnsMs }, signal);
      onResolved(addresses);
      const socket = await openConnection(
        { hostname, port, addresses, isAllowed, secureContext, connectMs },
        signal,
      );
      onConnected(socket.remoteAddress ?? null);
      let surplus = false;
      const connection = new Connection(socket, origin, () => {
        surplus = true;
        pool.leaveAlone(endpointId);
        onSurplus();
      });
      if (await connection.isQuiet()) return await exchange(connection, request, signal);
      socket.destroy();
      if (surplus) throw unreadable('early');
      throw faultOfOpenConnection(socket.errored ?? new DeliveryFault('reset', 'closed before the request'));
    } finally {
      endWait();
    }
  }

  async function send(input: SendInput): Promise<SentWebhook> {
    const startedAt = performance.now();
    const elapsed = () => Math.round(performance.now() - startedAt);
    const end = new AbortController();
    let address: string | null = null;
    let addresses: readonly string[] = [];
    const tooLong = () => end.abort(new DeliveryFault('timeout', 'the exchange took too long'));
    const stopDeadline = startDeadline(timeouts.totalMs, tooLong);
    try {
      const answered = await post(
        input,
        (resolved) => (addresses = resolved),
        (connectedTo) => (address = connectedTo),
        end.signal,
      );
      const { response } = answered;
      const retryAfter = response.headers['retry-after'];
      const retryAfterMs = retryAfter === undefined ? null : parseRetryAfter(retryAfter, now());
      const clockSkewMs = clockSkewOf(response.headers.date, now());
      const outcome = outcomeOfStatus(response.statusCode ?? 0, elapsed(), retryAfterMs);
      const body = await readAnswer(response, timeouts.bodyMs, end.signal);
      const { location } = response.headers;
      const redirects = outcome.kind === 'failed' && outcome.failure === 'redirect' && location !== undefined;
      // Without it nobody can say which address the partner should have registered.
      const answer = redirects ? `Location: ${location}\n\n${body}`.slice(0, KEPT_BYTES) : body;
      release(input.endpointId, answered, outcome.kind === 'delivered');
      return { outcome, address, addresses, answer, detail: null, clockSkewMs };
    } catch (error) {
      if (!(error instanceof DeliveryFault)) throw error;
      const { failure, detail, reason } = error;
      const none = { httpStatus: null, retryAfterMs: null, ...(reason && { reason }) } as const;
      const outcome = { kind: 'failed', failure, durationMs: elapsed(), ...none } as const;
      return { outcome, answer: null, address, addresses, detail, clockSkewMs: null };
    } finally {
      stopDeadline();
    }
  }

  /** Keeps the connection after a success with a clean end. After a failure name and certificate are checked again. */
  function release(endpointId: string, { connection, response, bytesBehind }: Answer, succeeded: boolean) {
    const behind = response.complete ? bytesBehind() : null;
    if (behind !== null && behind > 0) connection.reportSurplus();
    if (succeeded && behind === 0) pool.keep(endpointId, connection);
    // Node closes a connection that is not to be kept, in order.
    else if (connection.isOpen) connection.socket.destroy();
  }

  return { send, close: () => pool.close() };
}

/**
 * Whether an answer on a kept connection may belong to something else than this request. 408 may belong to the idle time before it. 400, 405
 * and 501, when the server closes with them, may belong to the body of the request before: some servers leave a body unread, and take it for
 * the beginning of the next request (cpython issue 150499).
 */
const mayBelongToAnother = ({ statusCode = 0, headers }: IncomingMessage): boolean =>
  statusCode === 408 || ([400, 405, 501].includes(statusCode) && /\bclose\b/i.test(headers.connection ?? ''));

/**
 * A kept connection fails for reasons that are none of the partner, such as a server that closes it just
 * then. The caller sends again on a new one. A timeout is the partner's.
 */
function notOfThePartner(error: unknown): null {
  if (error instanceof DeliveryFault && error.failure !== 'timeout') return null;
  throw error;
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
function readAnswer(response: IncomingMessage, bodyMs: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const kept = Buffer.alloc(KEPT_BYTES);
    let keptLength = 0;
    let readLength = 0;
    const finish = () => {
      stopDeadline();
      signal.removeEventListener('abort', stop);
      resolve(toText(response, kept.subarray(0, keptLength)));
    };
    const stop = () => {
      response.destroy();
      finish();
    };
    const stopDeadline = startDeadline(bodyMs, stop);
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
    if (response.closed) finish();
  });
}

function toText(response: IncomingMessage, bytes: Uint8Array): string {
  const encoding = response.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return '(compressed, though identity was asked for)';
  // `stream` leaves out a character that is cut off at the end.
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '\uFFFD');
}

function clockSkewOf(date: string | undefined, nowMs: number): number | null {
  const theirsMs = date === undefined ? null : parseHttpDate(date.trim(), nowMs);
  return theirsMs === null ? null : nowMs - theirsMs;
}

/**
 * Checks a URL before it is registered: its form, its resolution and every address. Opens no connection.
 */
export async function checkRegistrationTarget(
  url: string,
  options: Pick<SenderOptions, 'allowedCidrs' | 'allowedPorts' | 'resolver' | 'hosts' | 'timeouts'>,
): Promise<WebhookUrlCheck> {
  const { hosts = new Map(), allowedPorts, resolver, timeouts } = options;
  const target = checkWebhookUrl(url, { allowedPorts, allowedNames: new Set(hosts.keys()) });
  if (!target.ok) return target;
  const isAllowed = createAddressGuard(options.allowedCidrs);
  const dnsMs = timeouts?.dnsMs ?? SEND_TIMEOUTS.dnsMs;
  try {
    await resolveTarget(target.hostname, { resolver, hosts, isAllowed, dnsMs });
    return target;
  } catch (error) {
    const fault = error instanceof DeliveryFault ? error : null;
    if (fault?.failure === 'blocked_address') {
      const message = `The URL leads to an address that webhooks may not be sent to: ${fault.detail}.`;
      return { ok: false, reason: 'blocked_address', message };
    }
    const message = await explainNames(fault?.detail ?? codeOf(error), resolver, dnsMs);
    return { ok: false, reason: 'dns', message };
  }
}

export const hmacSha256: HmacSha256 = (key, message) =>
  createHmac('sha256', key).update(message, 'utf8').digest();

const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');

/** Ed25519 by Node. Reading the JWK takes 40 µs, signing 35 µs. No private key stays in memory. */
export const signEd25519: SignEd25519 = ({ publicKey, privateKey }, message) => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: base64url(publicKey), d: base64url(privateKey) };
  return sign(null, Buffer.from(message, 'utf8'), createPrivateKey({ key: jwk, format: 'jwk' }));
};
