import { createHmac, createPrivateKey, sign } from 'node:crypto';
import { createSecureContext, rootCertificates } from 'node:tls';
import {
  outcomeOfStatus,
  parseHttpDate,
  parseRetryAfter,
  type SentWebhook,
} from '../domain/delivery-outcome';
import { checkWebhookUrl, type HmacSha256, type SignEd25519, type WebhookUrlCheck } from '../domain/webhook';
import { codeOf, createAddressGuard, openConnection, DeliveryFault } from './connect';
import { ConnectionPool, exchange, StaleConnection, readAnswer } from './exchange';
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
  const pool = new ConnectionPool(true);
  const unpooled = new ConnectionPool(false);

  async function post(input: SendInput, onConnected: (address: string | null) => void, signal: AbortSignal) {
    // Checked at registration, and again here because rules and rows change.
    const target = checkWebhookUrl(input.url, rules);
    if (!target.ok) throw new DeliveryFault('blocked_address', target.reason);
    const { hostname, port } = target;
    const deps = { resolver, hosts, isAllowed, dnsMs: timeouts.dnsMs };
    const open = async () => {
      const addresses = await resolveTarget(hostname, deps, signal);
      const { connectMs } = timeouts;
      return openConnection({ hostname, port, addresses, isAllowed, secureContext, connectMs }, signal);
    };
    const request = {
      open,
      hostname,
      port,
      path: new URL(target.url).pathname,
      headers: input.headers,
      body: Buffer.from(input.body, 'utf8'),
      headersMs: timeouts.headersMs,
      onConnected,
    };
    try {
      return await exchange({ ...request, pool }, signal);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      onConnected(null);
      return exchange({ ...request, pool: unpooled }, signal);
    }
  }

  async function send(input: SendInput): Promise<SentWebhook> {
    const startedAt = performance.now();
    const elapsed = () => Math.round(performance.now() - startedAt);
    const end = new AbortController();
    let address: string | null = null;
    const tooLong = () => end.abort(new DeliveryFault('timeout', 'the exchange took too long'));
    const timer = setTimeout(tooLong, timeouts.totalMs);
    try {
      const response = await post(input, (connectedTo) => (address = connectedTo), end.signal);
      const retryAfter = response.headers['retry-after'];
      const retryAfterMs = retryAfter === undefined ? null : parseRetryAfter(retryAfter, now());
      const clockSkewMs = clockSkewOf(response.headers.date, now());
      const outcome = outcomeOfStatus(response.statusCode ?? 0, elapsed(), retryAfterMs);
      // After a failure the next attempt resolves the name and checks the certificate again.
      if (outcome.kind === 'failed') pool.spend(response.socket);
      const answer = await readAnswer(response, timeouts.bodyMs, end.signal);
      return { outcome, address, answer, detail: null, clockSkewMs };
    } catch (error) {
      if (!(error instanceof DeliveryFault)) throw error;
      const { failure, detail } = error;
      const none = { httpStatus: null, retryAfterMs: null } as const;
      const outcome = { kind: 'failed', failure, durationMs: elapsed(), ...none } as const;
      return { outcome, answer: null, address, detail, clockSkewMs: null };
    } finally {
      clearTimeout(timer);
    }
  }

  return { send, close: () => pool.destroy() };
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
