import createFetchClient, { type Client as FetchClient } from 'openapi-fetch';
import { ApiError } from './api-error.js';
import type { components, operations, paths } from './schema.js';
import type { Quote, TestNotification } from './types.js';

/** Pricing takes milliseconds; a shopper should not wait for longer than this. */
const QUOTE_TIMEOUT_MS = 10_000;
/** A test notification is answered within 10 s, after its first attempt. */
const TEST_TIMEOUT_MS = 20_000;

export interface ClientOptions {
  /** The address you were given, `https://…`. */
  readonly baseUrl: string;
  /** `sk_test_…` or `sk_live_…`. Use it on servers only. */
  readonly apiKey: string;
  /** Yours: a letter `P` and six digits. */
  readonly partnerId: string;
  /** Longest wait for a quote in milliseconds; default: 10,000. */
  readonly timeoutMs?: number;
  /** In place of the global fetch, for example with a proxy. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** A quote request; the partner id is filled in. Send amounts as strings with two decimals. */
export type QuoteInput = Omit<components['schemas']['QuoteRequest'], 'partner_id'>;

type TestQuery = NonNullable<operations['sendTestNotification']['parameters']['query']>;

export interface Client {
  /**
   * What finance a shopper can be offered. Asking again makes another quote; nothing is retried here.
   * @param options.requestId sent as `X-Request-Id`, 1 to 128 visible ASCII characters.
   * @throws ApiError when the service refuses; a TypeError or TimeoutError of fetch when it cannot be reached in time.
   */
  quote(input: QuoteInput, options?: { requestId?: string; signal?: AbortSignal }): Promise<Quote>;
  /**
   * Has a signed test event sent to the endpoint that is registered for the key's environment.
   * @throws ApiError, with `WEBHOOK_NOT_REGISTERED` or `TEST_NOTIFICATION_LIMIT_REACHED` among others.
   */
  sendTestNotification(options?: { lender?: TestQuery['lender'] }): Promise<TestNotification>;
  /** The typed calls underneath (openapi-fetch), for all that is not covered here. */
  readonly raw: FetchClient<paths>;
}

/** Opens nothing yet: connections are those of fetch. */
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey, partnerId, timeoutMs = QUOTE_TIMEOUT_MS, fetch } = options;
  if (!baseUrl.startsWith('https://')) throw new TypeError('baseUrl must begin with https://');
  const raw = createFetchClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${apiKey}` },
    ...(fetch !== undefined && { fetch }),
  });
  return {
    raw,
    async quote(input, { requestId, signal } = {}) {
      const { data, error, response } = await raw.POST('/v1/finance-quote', {
        body: { ...input, partner_id: partnerId },
        headers: requestId === undefined ? {} : { 'X-Request-Id': requestId },
        signal: within(timeoutMs, signal),
      });
      return answered(data, error, response);
    },
    async sendTestNotification({ lender } = {}) {
      const { data, error, response } = await raw.POST('/v1/notifications/test', {
        params: { query: lender === undefined ? {} : { lender } },
        signal: within(TEST_TIMEOUT_MS),
      });
      return answered(data, error, response);
    },
  };
}

function within(timeoutMs: number, signal?: AbortSignal): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
}

function answered<T>(body: { success: true; data: T } | undefined, error: unknown, response: Response): T {
  if (body?.success !== true) throw new ApiError(response, error);
  return body.data;
}
