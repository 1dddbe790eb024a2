import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Webhook } from 'standardwebhooks';

/** Like the tolerance of the published libraries. */
const TOLERANCE_SECONDS = 300;

/**
 * Does what a partner has to: checks the Standard Webhooks headers with the published package, and `Service-Signature`
 * by its definition, over the body's bytes. One secret must fit both.
 * @returns undefined when all is well, else why not, without any signature or secret.
 */
export function whyNotVerified(
  headers: IncomingHttpHeaders,
  body: Buffer,
  secrets: readonly string[],
  now: Date,
): string | undefined {
  if (secrets.length === 0) return 'the receiver has been given no secret';
  const reasons = secrets.map((secret) => {
    const standard = standardFault(headers, body, secret);
    return standard === undefined
      ? serviceFault(headers, body, secret, now)
      : `Standard Webhooks: ${standard}`;
  });
  return reasons.includes(undefined) ? undefined : reasons[0];
}

function standardFault(headers: IncomingHttpHeaders, body: Buffer, secret: string): string | undefined {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;
  const given = Object.fromEntries(names.map((name) => [name, single(headers[name])]));
  try {
    new Webhook(secret).verify(body, given, { jsonParse: false });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function serviceFault(
  headers: IncomingHttpHeaders,
  body: Buffer,
  secret: string,
  now: Date,
): string | undefined {
  const parts = single(headers['service-signature']).split(',');
  const t = parts.find((part) => part.startsWith('t='))?.slice(2) ?? '';
  if (!/^\d{1,12}$/.test(t)) return 'Service-Signature: missing, or without t=';
  if (Math.abs(now.getTime() / 1_000 - Number(t)) > TOLERANCE_SECONDS)
    return 'Service-Signature: its time is too far from ours';
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${t}.`).update(body).digest();
  const fits = parts
    .filter((part) => part.startsWith('v1='))
    .map((part) => Buffer.from(part.slice(3), 'hex'))
    .some((found) => found.length === expected.length && timingSafeEqual(found, expected));
  return fits ? undefined : 'Service-Signature: no v1 fits';
}

function single(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}
