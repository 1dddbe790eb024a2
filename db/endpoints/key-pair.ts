import { generateKeyPairSync } from 'node:crypto';
import { PRIVATE_KEY_PREFIX, PUBLIC_KEY_PREFIX } from '../../domain/webhook-signature';

/** An Ed25519 key pair as Standard Webhooks writes it down. */
export interface KeyPair {
  /** `whpk_` and base64 of 32 bytes. */
  readonly publicKey: string;
  /** `whsk_` and base64 of 32 bytes (RFC 8032's private key, of which the rest is made). Shown to nobody, and stored only sealed. */
  readonly privateKey: string;
}

export function generateKeyPair(): KeyPair {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const base64 = (text: string) => Buffer.from(text, 'base64url').toString('base64');
  return { publicKey: PUBLIC_KEY_PREFIX + base64(x), privateKey: PRIVATE_KEY_PREFIX + base64(d) };
}
