import type { WebhookEvent } from './types.js';

/** As Node's `request.headers`, or a `Headers`. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
/** The bytes that arrived, or their text in UTF-8. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;

/** It is not ours, or too old: answer 400 or 401, and do nothing else. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';

  constructor(
    /** `headers`: one is missing; `timestamp`: more than five minutes from now; `signature`: no key fits. */
    readonly reason: 'headers' | 'timestamp' | 'signature',
    message: string,
  ) {
    super(message);
  }
}

const TOLERANCE_SECONDS = 300;
/** With its one spelling, so that a key that was cut off or written by hand is noticed. */
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/** How Standard Webhooks tells keys apart, and which signatures each is for. */
const KINDS = [
  { prefix: 'whsec_', version: 'v1', algorithm: { name: 'HMAC', hash: 'SHA-256' } },
  { prefix: 'whpk_', version: 'v1a', algorithm: { name: 'Ed25519' } },
] as const;

/**
 * Verifies a webhook by its `webhook-*` headers (Standard Webhooks), and returns its event.
 * @param rawBody exactly the bytes that arrived, not JSON that was parsed and written again.
 * @param keys secrets (`whsec_…`) or public keys (`whpk_…`), one or, while you change from one to the next, several: a list, or a text
 * with white space between them.
 * @throws WebhookVerificationError when none fits, a header is missing, or it was signed more than five minutes ago (or ahead);
 * TypeError when there is no key, or one is malformed.
 */
export async function verifyWebhook(
  rawBody: WebhookBody,
  headers: WebhookHeaders,
  keys: string | readonly string[],
): Promise<WebhookEvent> {
  return verifyWith(readWebhookKeys(keys), rawBody, headers);
}

/**
 * Call it when your receiver starts: it then stops at once when the variable with its secrets is unset, instead of refusing every event.
 * @param keys as for `verifyWebhook`
 * @returns the keys, for `verifyWebhook`
 * @throws TypeError that does not show a key, when there is none, or one is malformed.
 */
export function readWebhookKeys(keys: string | readonly string[] | undefined): string[] {
  const list = typeof keys === 'string' ? keys.split(/\s+/).filter((key) => key !== '') : [...(keys ?? [])];
  if (list.length === 0)
    throw new TypeError('there is no key: is the variable that should contain it unset or empty?');
  list.forEach(readKey);
  return list;
}

/** @param keys may be empty: then none fits */
export async function verifyWith(
  keys: readonly string[],
  rawBody: WebhookBody,
  headers: WebhookHeaders,
): Promise<WebhookEvent> {
  const known = keys.map(readKey);
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  // What is signed has points between its parts, so a point in the id would let somebody divide it differently.
  if (id === '' || id.includes('.') || !/^\d{1,12}$/.test(timestamp) || signatures[0] === '')
    throw new WebhookVerificationError('headers', 'a webhook-* header is missing or malformed');
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS)
    throw new WebhookVerificationError('timestamp', 'it was signed more than five minutes from now');
  const body = bytesOf(rawBody);
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  for (const { bytes, version, algorithm } of known) {
    const given = signatures.filter((one) => one.startsWith(`${version},`));
    if (given.length === 0) continue;
    const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
    for (const one of given) {
      const signature = base64(one.slice(version.length + 1));
      // It compares in constant time.
      if (signature !== null && (await crypto.subtle.verify(algorithm, key, signature, signed)))
        return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
    }
  }
  // Of every event the first character is a brace.
  const hint = body[0] === 0x7b ? '' : ', and the body is not JSON: is it still in base64?';
  throw new WebhookVerificationError('signature', `no signature fits a key${hint}`);
}

/** @throws TypeError that does not show the key. */
function readKey(text: string) {
  const kind = KINDS.find(({ prefix }) => text.startsWith(prefix));
  if (kind === undefined)
    throw new TypeError('a key begins with neither whsec_ nor whpk_: is it a placeholder, or in quotes?');
  const encoded = text.slice(kind.prefix.length);
  const bytes = BASE64_OF_32_BYTES.test(encoded) ? base64(encoded) : null;
  if (bytes === null)
    throw new TypeError(
      `behind ${kind.prefix} must come 32 bytes in base64, 44 characters: was the key cut off?`,
    );
  return { ...kind, bytes };
}

function base64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function bytesOf(body: WebhookBody): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  // Not by their classes, of which a test runner has several.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') return new Uint8Array(body);
  throw new WebhookVerificationError(
    'signature',
    'the body is neither the bytes that arrived nor their text: was it parsed already, or never read?',
  );
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (typeof headers.get === 'function') return (headers as Headers).get(name) ?? '';
  const plain = headers as Exclude<WebhookHeaders, Headers>;
  const found = Object.keys(plain).find((key) => key.toLowerCase() === name);
  const value = found === undefined ? undefined : plain[found];
  return typeof value === 'string' ? value : (value?.[0] ?? '');
}
