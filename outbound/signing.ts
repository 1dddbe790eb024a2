import { createHmac, createPrivateKey, sign } from 'node:crypto';
import type { HmacSha256, SignEd25519 } from '../domain/webhook-signature';

/** HMAC-SHA256 by Node, for `signatureHeaders`. */
export const hmacSha256: HmacSha256 = (key, message) =>
  createHmac('sha256', key).update(message, 'utf8').digest();

const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');

/**
 * Ed25519 by Node, for `signatureHeaders`. The key is read as JWK at each signature: that takes 40 µs of CPU, the signature itself 35, and
 * no private key stays in memory. (From PKCS #8 it takes ten times as long.)
 */
export const signEd25519: SignEd25519 = ({ publicKey, privateKey }, message) => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: base64url(publicKey), d: base64url(privateKey) };
  return sign(null, Buffer.from(message, 'utf8'), createPrivateKey({ key: jwk, format: 'jwk' }));
};
