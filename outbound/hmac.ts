import { createHmac } from 'node:crypto';
import type { HmacSha256 } from '../domain/webhook-signature';

/** HMAC-SHA256 by Node, for `signatureHeaders`. */
export const hmacSha256: HmacSha256 = (key, message) =>
  createHmac('sha256', key).update(message, 'utf8').digest();
