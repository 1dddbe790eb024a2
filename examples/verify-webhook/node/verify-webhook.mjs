// Verifies a webhook of the Partner Finance Quote Service. Node 18 or later, no dependencies.
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';

const TOLERANCE_SECONDS = 300;

/**
 * The secrets in a text, separated by white space. Call it when your receiver starts.
 * @throws TypeError when there is none, or one is malformed
 */
export const readSecrets = (text) => checked(text?.split(/\s+/).filter(Boolean), 'whsec_');

/** The same of public keys. */
export const readPublicKeys = (text) => checked(text?.split(/\s+/).filter(Boolean), 'whpk_');

/** Whoever knows an empty or guessable key can sign, so nothing but 32 bytes in base64 is a key. The error does not show it. */
function checked(keys, prefix) {
  if (!Array.isArray(keys) || keys.length === 0)
    throw new TypeError(`there is no ${prefix} key: is the variable that should contain it unset or empty?`);
  for (const key of keys) {
    if (typeof key !== 'string' || !key.startsWith(prefix))
      throw new TypeError(`a key does not begin with ${prefix}: is it a placeholder, or in quotes?`);
    if (!/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(key.slice(prefix.length)))
      throw new TypeError(
        `behind ${prefix} must come 32 bytes in base64, 44 characters: was the key cut off?`,
      );
  }
  return keys;
}

const bytesOf = (key) => Buffer.from(key.slice(key.indexOf('_') + 1), 'base64');

const isFresh = (timestamp, now) =>
  /^\d{1,12}$/.test(timestamp) && Math.abs(now - Number(timestamp)) <= TOLERANCE_SECONDS;

/** What is signed has points between its parts, so a point in the id would let somebody divide it differently. */
const isId = (id) => /^[^.]+$/.test(id);

const matches = (given, expected) => given.length === expected.length && timingSafeEqual(given, expected);

/** `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets. */
export function verifyServiceSignature(body, header, secrets, now = Date.now() / 1000) {
  const keys = checked(secrets, 'whsec_').map(bytesOf);
  const parts = header.split(',').map((part) => part.trim().split('='));
  const timestamp = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!isFresh(timestamp, now)) return false;
  const given = parts.filter(([name]) => name === 'v1').map(([, hex = '']) => Buffer.from(hex, 'hex'));
  return keys.some((key) => {
    const expected = createHmac('sha256', key).update(`${timestamp}.`).update(body).digest();
    return given.some((signature) => matches(signature, expected));
  });
}

/** Standard Webhooks: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…` separated by spaces. */
export function verifyStandardWebhook(body, { id, timestamp, signature }, secrets, now = Date.now() / 1000) {
  const keys = checked(secrets, 'whsec_').map(bytesOf);
  if (!isId(id) || !isFresh(timestamp, now)) return false;
  const parts = signature.split(' ').map((part) => part.split(','));
  const given = parts.filter(([name]) => name === 'v1').map(([, text = '']) => Buffer.from(text, 'base64'));
  return keys.some((key) => {
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
    return given.some((one) => matches(one, expected));
  });
}

/** Standard Webhooks without a shared secret: Ed25519 over the same in base64, `v1a,…`; the keys of `GET /v1/webhook-keys`. */
export function verifyWithPublicKeys(
  body,
  { id, timestamp, signature },
  publicKeys,
  now = Date.now() / 1000,
) {
  const keys = checked(publicKeys, 'whpk_').map(bytesOf);
  if (!isId(id) || !isFresh(timestamp, now)) return false;
  const parts = signature.split(' ').map((part) => part.split(','));
  const given = parts.filter(([name]) => name === 'v1a').map(([, text = '']) => Buffer.from(text, 'base64'));
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body)]);
  return keys.some((bytes) => {
    const x = bytes.toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return given.some((one) => verify(null, signed, key, one));
  });
}
