import type { Client } from './client.js';
import { sleep } from './retry.js';
import type { WebhookEvent } from './types.js';
import {
  verifyWith,
  WebhookVerificationError,
  type WebhookBody,
  type WebhookHeaders,
} from './verify-webhook.js';

/** Keys end a day after a rotation at the earliest, but when one leaked. */
const MAX_AGE_MS = 3_600_000;
/** A stranger's requests shall not make us ask more often. */
const LEAST_AGE_MS = 60_000;
/** A webhook is waited for 10 s. */
const READ_TIMEOUT_MS = 5_000;
/** A Worker of Cloudflare ends what a request began together with that request: no time limit of it fires, and its promise never settles. */
const LOST_AFTER_MS = 6_000;

/** Verifies webhooks without a shared secret. */
export interface WebhookVerifier {
  /**
   * As `verifyWebhook`, with the public keys that the service lists.
   * @throws besides, what `client.listWebhookKeys` throws, when they were never read: answer 500, and the webhook comes again.
   */
  verify(rawBody: WebhookBody, headers: WebhookHeaders): Promise<WebhookEvent>;
}

/**
 * Reads the public keys once an hour, and when no key fits, once a minute at most. While they cannot be read those read last go on.
 * @param client whose key is of the environment that the webhooks come from.
 */
export function createWebhookVerifier(client: Pick<Client, 'listWebhookKeys'>): WebhookVerifier {
  let known: { readonly keys: readonly string[]; readonly readAtMs: number } | undefined;
  let reading: Promise<readonly string[]> | undefined;

  async function read(): Promise<readonly string[]> {
    const readAtMs = performance.now();
    try {
      const listed = await client.listWebhookKeys({ signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
      known = { keys: listed.map((key) => key.public_key), readAtMs };
    } catch (error) {
      if (known === undefined) throw error;
      known = { ...known, readAtMs };
    }
    return known.keys;
  }

  async function keysNotOlderThan(ageMs: number): Promise<readonly string[]> {
    if (known !== undefined && performance.now() - known.readAtMs < ageMs) return known.keys;
    const shared = (reading ??= read());
    const wait = new AbortController();
    const keys = await Promise.race([shared, sleep(LOST_AFTER_MS, wait.signal)]).finally(() => {
      wait.abort();
      if (reading === shared) reading = undefined;
    });
    return keys ?? keysNotOlderThan(ageMs);
  }

  return {
    async verify(rawBody, headers) {
      const keys = await keysNotOlderThan(MAX_AGE_MS);
      try {
        return await verifyWith(keys, rawBody, headers);
      } catch (error) {
        if (!(error instanceof WebhookVerificationError) || error.reason !== 'signature') throw error;
        const fresh = await keysNotOlderThan(LEAST_AGE_MS);
        if (fresh === keys) throw error;
        return verifyWith(fresh, rawBody, headers);
      }
    },
  };
}
