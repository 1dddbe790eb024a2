export type WebhookUrlCheck =
  | {
      readonly ok: true;
      readonly url: string;
      /** Lower case, international names as punycode. */
      readonly hostname: string;
      readonly port: number;
    }
  | { readonly ok: false; readonly reason: WebhookUrlFault; readonly message: string };

interface WebhookUrlRules {
  readonly allowedPorts?: readonly number[];
  /** Allowed local names, lower case, of the embedded stack. */
  readonly allowedNames?: ReadonlySet<string>;
}

const MESSAGES = {
  not_a_url:
    'The URL must be a full https:// URL of at most 2,000 characters, without spaces or backslashes.',
  not_https: 'The URL must begin with https://.',
  user_info: 'The URL must not hold a user name or a password.',
  query: 'The URL must not have a query.',
  fragment: 'The URL must not have a fragment.',
  port: 'The URL must use port 443.',
  ip_address: 'The URL must name its host: an IP address, in any spelling, is not accepted.',
  trailing_dot: "The URL's host name must not end with a dot.",
  local_name: "The URL's host must be a public name, not localhost or a name without a dot.",
  host_name: "The URL's host is not a valid name.",
} as const;
type WebhookUrlFault = keyof typeof MESSAGES | 'dns' | 'blocked_address';

const MAX_LENGTH = 2_000;
/** Characters that URL parsers drop or rewrite silently. */
const REWRITTEN = /[\s\\\p{Cc}\p{Surrogate}]/u;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const DOTTED_QUAD = /^\d+(\.\d+){3}$/;

/** Checks the text of a webhook URL: https, a name as host, no user, query or fragment, an allowed port. */
export function checkWebhookUrl(text: string, rules: WebhookUrlRules = {}): WebhookUrlCheck {
  const fault = (reason: keyof typeof MESSAGES) =>
    ({ ok: false, reason, message: MESSAGES[reason] }) as const;
  if (text.length > MAX_LENGTH || REWRITTEN.test(text)) return fault('not_a_url');
  const url = parsedUrl(text);
  if (url === undefined) return fault('not_a_url');
  if (url.protocol !== 'https:') return fault('not_https');
  if (!/^https:\/\/[^/]/i.test(text)) return fault('not_a_url');
  // This checks the text, as a parser does not distinguish an empty query, fragment or user name.
  if (text.includes('#')) return fault('fragment');
  if (text.includes('?')) return fault('query');
  const authority = text.slice('https://'.length).split('/', 1)[0] ?? '';
  if (authority.includes('@')) return fault('user_info');
  const { hostname } = url;
  const port = url.port === '' ? 443 : Number(url.port);
  if (port !== 443 && !(rules.allowedPorts ?? []).includes(port)) return fault('port');
  // The parser has turned decimal, hexadecimal, octal and full-width spellings into dotted quads.
  if (hostname.startsWith('[') || DOTTED_QUAD.test(hostname)) return fault('ip_address');
  if (hostname.endsWith('.')) return fault('trailing_dot');
  const labels = hostname.split('.');
  if (hostname.length > 253 || !labels.every((label) => LABEL.test(label))) return fault('host_name');
  const local = labels.length === 1 || labels.at(-1) === 'localhost';
  if (local && rules.allowedNames?.has(hostname) !== true) return fault('local_name');
  return { ok: true, url: url.href, hostname, port };
}

/** A text as a URL, or undefined. `URL.canParse` of Node 20.20 takes Latin-1 for UTF-8. */
export function parsedUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** HMAC-SHA256 of a text in UTF-8, passed in because `domain/` has no cryptography. */
export type HmacSha256 = (key: Uint8Array, message: string) => Uint8Array;
/** The Ed25519 signature (RFC 8032, 64 bytes) of a text in UTF-8, under a key pair of 32 bytes each. */
export type SignEd25519 = (pair: SigningPair<Uint8Array>, message: string) => Uint8Array;

/** Key pair of a tenant; as text `whpk_` or `whsk_` (RFC 8032's private key) and base64 of 32 bytes. */
export interface SigningPair<Key> {
  readonly publicKey: Key;
  readonly privateKey: Key;
}

const SECRET_PREFIX = 'whsec_';
/** Prefixes of Standard Webhooks for keys of its asymmetric form. */
export const PRIVATE_KEY_PREFIX = 'whsk_';
export const PUBLIC_KEY_PREFIX = 'whpk_';
const KEY_BYTES = 32;

interface SigningInput {
  readonly body: string;
  readonly eventId: string;
  /** Unix seconds at which this attempt is made. */
  readonly timestamp: number;
  /** Live secrets, `whsec_` and base64 of 32 bytes, newest first; at least one. */
  readonly secrets: readonly string[];
  /** Live key pairs, newest first; at least one. */
  readonly keyPairs: readonly SigningPair<string>[];
  readonly hmac: HmacSha256;
  readonly sign: SignEd25519;
}

/**
 * The headers that prove an event is ours, with one signature per live secret in both forms:
 * `Service-Signature` over `<t>.<body>` in hex, and the Standard Webhooks headers over `<id>.<t>.<body>`
 * in base64. The HMAC key is the decoded 32 bytes of the secret. Behind them `webhook-signature` has one
 * `v1a` per live key pair, so that a receiver that reads only the first signatures still finds those it
 * knows.
 * @throws RangeError without a secret or key pair, or for a malformed one, which the message never
 * contains
 */
export function signatureHeaders(input: SigningInput) {
  const { body, eventId, timestamp, secrets, keyPairs, hmac, sign } = input;
  if (secrets.length === 0) throw new RangeError('an event needs at least one secret to be signed with');
  if (keyPairs.length === 0) throw new RangeError('an event needs at least one key pair to be signed with');
  const keys = secrets.map(decodeSecret);
  const signed = `${eventId}.${timestamp}.${body}`;
  const own = keys.map((key) => `v1=${toHex(hmac(key, `${timestamp}.${body}`))}`);
  const standard = [
    ...keys.map((key) => `v1,${toBase64(hmac(key, signed))}`),
    ...keyPairs.map((pair) => `v1a,${toBase64(sign(decodePair(pair), signed))}`),
  ];
  return {
    'Service-Signature': `t=${timestamp},${own.join(',')}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard.join(' '),
  };
}

/**
 * The 32 key bytes of a secret.
 * @throws RangeError when it is malformed; the message never contains it
 */
export const decodeSecret = (secret: string) => decode(secret, SECRET_PREFIX, 'a webhook secret');

const decodePair = ({ publicKey, privateKey }: SigningPair<string>): SigningPair<Uint8Array> => ({
  publicKey: decode(publicKey, PUBLIC_KEY_PREFIX, 'a public key'),
  privateKey: decode(privateKey, PRIVATE_KEY_PREFIX, 'a private key'),
});

/** Base64 of exactly 32 bytes: 43 characters and one `=`. */
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{43}=$/;

function decode(text: string, prefix: string, what: string): Uint8Array {
  const base64 = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !BASE64_OF_32_BYTES.test(base64))
    throw new RangeError(`${what} must be ${prefix} and base64 of 32 bytes`);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * The secret of 32 key bytes.
 * @throws RangeError for any other length
 */
export function encodeSecret(bytes: Uint8Array): string {
  if (bytes.length !== KEY_BYTES) throw new RangeError('a webhook secret holds 32 bytes');
  return SECRET_PREFIX + toBase64(bytes);
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
