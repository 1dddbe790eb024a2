// Verifies a webhook of the Partner Finance Quote Service. Node 18 or later, no dependencies.
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';

const TOLERANCE_SECONDS = 300;

/** The bytes of a secret: `whsec_` and base64. */
const keyOf = (secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64');

const isFresh = (timestamp, now) =>
  /^\d+$/.test(timestamp) && Math.abs(now - Number(timestamp)) <= TOLERANCE_SECONDS;

const matches = (given, expected) => given.length === expected.length && timingSafeEqual(given, expected);

/** `Service-Signature: t=…,v1=…`: HMAC-SHA256 of `<t>.<body>` in hex, one v1 for each of our live secrets. */
export function verifyServiceSignature(body, header, secrets, now = Date.now() / 1000) {
  const parts = header.split(',').map((part) => part.trim().split('='));
  const timestamp = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!isFresh(timestamp, now)) return false;
  const given = parts.filter(([name]) => name === 'v1').map(([, hex = '']) => Buffer.from(hex, 'hex'));
  return secrets.some((secret) => {
    const expected = createHmac('sha256', keyOf(secret)).update(`${timestamp}.`).update(body).digest();
    return given.some((signature) => matches(signature, expected));
  });
}

/** Standard Webhooks: HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64, `v1,…` separated by spaces. */
export function verifyStandardWebhook(body, { id, timestamp, signature }, secrets, now = Date.now() / 1000) {
  if (!isFresh(timestamp, now)) return false;
  const parts = signature.split(' ').map((part) => part.split(','));
  const given = parts.filter(([name]) => name === 'v1').map(([, text = '']) => Buffer.from(text, 'base64'));
  return secrets.some((secret) => {
    const expected = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest();
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
  if (!isFresh(timestamp, now)) return false;
  const parts = signature.split(' ').map((part) => part.split(','));
  const given = parts.filter(([name]) => name === 'v1a').map(([, text = '']) => Buffer.from(text, 'base64'));
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body)]);
  return publicKeys.some((publicKey) => {
    const x = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return given.some((one) => verify(null, signed, key, one));
  });
}
