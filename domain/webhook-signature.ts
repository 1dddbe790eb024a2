/** HMAC-SHA256 of a text in UTF-8: passed in, because `domain/` has no cryptography of its own. */
export type HmacSha256 = (key: Uint8Array, message: string) => Uint8Array;
/** The Ed25519 signature (RFC 8032, 64 bytes) of a text in UTF-8, under a key pair of 32 bytes each. */
export type SignEd25519 = (pair: SigningPair<Uint8Array>, message: string) => Uint8Array;

interface SigningPair<Key> {
  readonly publicKey: Key;
  readonly privateKey: Key;
}

const SECRET_PREFIX = 'whsec_';
/** As Standard Webhooks writes keys of its asymmetric form. */
export const PRIVATE_KEY_PREFIX = 'whsk_';
export const PUBLIC_KEY_PREFIX = 'whpk_';
const KEY_BYTES = 32;

interface SigningInput {
  /** The body, exactly as it is sent. */
  readonly body: string;
  readonly eventId: string;
  /** Unix seconds at which this attempt is made. */
  readonly timestamp: number;
  /** Live secrets, `whsec_` and base64 of 32 bytes, newest first; at least one. */
  readonly secrets: readonly string[];
  /** Live key pairs, `whpk_` or `whsk_` and base64 of 32 bytes, newest first; at least one. */
  readonly keyPairs: readonly SigningPair<string>[];
  readonly hmac: HmacSha256;
  readonly sign: SignEd25519;
}

/**
 * The headers that prove an event is ours, one signature per live secret in both forms: `Service-Signature` over
 * `<t>.<body>` in hex, and the Standard Webhooks headers over `<id>.<t>.<body>` in base64. The HMAC key is the decoded
 * 32 bytes of the secret. Behind them `webhook-signature` has one of the asymmetric form, `v1a`, per live key pair: a receiver that
 * reads only the first signatures still finds those it knows.
 * @throws RangeError when there is no secret or key pair, or one is malformed; the message never holds it.
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
 * @throws RangeError when it is not `whsec_` and base64 of 32 bytes; the message never holds it.
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
 * @throws RangeError for any other length.
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
