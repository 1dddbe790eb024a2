/** HMAC-SHA256 of a text in UTF-8: passed in, because `domain/` has no cryptography of its own. */
export type HmacSha256 = (key: Uint8Array, message: string) => Uint8Array;

const SECRET_PREFIX = 'whsec_';
const KEY_BYTES = 32;

interface SigningInput {
  /** The body, exactly as it is sent. */
  readonly body: string;
  readonly eventId: string;
  /** Unix seconds at which this attempt is made. */
  readonly timestamp: number;
  /** Live secrets, `whsec_` and base64 of 32 bytes, newest first; at least one. */
  readonly secrets: readonly string[];
  readonly hmac: HmacSha256;
}

/**
 * The headers that prove an event is ours, one signature per live secret in both forms: `Service-Signature` over
 * `<t>.<body>` in hex, and the Standard Webhooks headers over `<id>.<t>.<body>` in base64. The HMAC key is the decoded
 * 32 bytes of the secret.
 * @throws RangeError when there is no secret, or one is malformed; the message never holds it.
 */
export function signatureHeaders({ body, eventId, timestamp, secrets, hmac }: SigningInput) {
  if (secrets.length === 0) throw new RangeError('an event needs at least one secret to be signed with');
  const keys = secrets.map(decodeSecret);
  const own = keys.map((key) => `v1=${toHex(hmac(key, `${timestamp}.${body}`))}`);
  const standard = keys.map((key) => `v1,${toBase64(hmac(key, `${eventId}.${timestamp}.${body}`))}`);
  return {
    'Service-Signature': `t=${timestamp},${own.join(',')}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard.join(' '),
  };
}

/** Base64 of exactly 32 bytes: 43 characters and one `=`. */
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

/**
 * The 32 key bytes of a secret.
 * @throws RangeError when it is not `whsec_` and base64 of 32 bytes; the message never holds it.
 */
export function decodeSecret(secret: string): Uint8Array {
  if (!SECRET.test(secret)) throw new RangeError('a webhook secret must be whsec_ and base64 of 32 bytes');
  const bytes = Uint8Array.from(atob(secret.slice(SECRET_PREFIX.length)), (character) =>
    character.charCodeAt(0),
  );
  if (bytes.length !== KEY_BYTES) throw new RangeError('a webhook secret must hold 32 bytes');
  return bytes;
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
