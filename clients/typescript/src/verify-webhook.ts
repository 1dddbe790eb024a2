import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type { WebhookEvent } from './types.js';

export { WebhookVerificationError };

/** As Node's `request.headers`, or a `Headers`. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const NAMES = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

/**
 * Verifies a webhook, and returns its event.
 * @param rawBody exactly the bytes that arrived, not JSON that was parsed and written again.
 * @param secrets `whsec_…`, one or, while you change from one to the next, several.
 * @throws WebhookVerificationError when no secret fits, a header is missing, or it was signed more than five minutes ago
 * (or ahead): answer 400 or 401, and do nothing else.
 */
export function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
): WebhookEvent {
  const body = typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody);
  const known = typeof secrets === 'string' ? [secrets] : secrets;
  const signed = Object.fromEntries(NAMES.map((name) => [name, headerOf(headers, name)]));
  let refusal = new WebhookVerificationError('no secret was given');
  for (const secret of known) {
    try {
      return new Webhook(secret).verify(body, signed) as WebhookEvent;
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const found = Object.keys(headers).find((key) => key.toLowerCase() === name);
  const value = found === undefined ? undefined : headers[found];
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}
