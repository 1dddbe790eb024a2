import { createPrivateKey, sign } from 'node:crypto';
import type { SignEd25519 } from '../domain/webhook-signature';

/** What stands before the 32 bytes of a private key in PKCS #8 (RFC 8410 §7): version, algorithm 1.3.101.112, two octet strings. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Ed25519 by Node, for `signatureHeaders`. */
export const signEd25519: SignEd25519 = (privateKey, message) => {
  const der = Buffer.concat([PKCS8_HEAD, privateKey]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return sign(null, Buffer.from(message, 'utf8'), key);
};
