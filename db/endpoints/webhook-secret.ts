import { randomBytes } from 'node:crypto';
import { encodeSecret } from '../../domain/webhook-signature';

/** A new webhook secret: `whsec_` and base64 of 32 random bytes. Shown once, then only sealed. */
export function generateWebhookSecret(): string {
  return encodeSecret(randomBytes(32));
}
