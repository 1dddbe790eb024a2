import { createHttp, type Call, type CallOptions } from './http.js';
import type {
  ApplicationStatus,
  CreditApplication,
  Notification,
  NotificationFilter,
  NotificationSummary,
  Quote,
  QuoteInput,
  Recovery,
  Resend,
  Simulation,
  Span,
  TestLender,
  TestNotification,
  WebhookEndpoint,
  WebhookKey,
} from './types.js';

/** Pricing takes milliseconds; a shopper should not wait for longer than this, repetitions included. */
const QUOTE_TIMEOUT_MS = 10_000;
/** A test notification is answered within 10 s, after its first attempt. */
const TEST_TIMEOUT_MS = 20_000;
const TIMEOUT_MS = 10_000;
/** What is not for a shopper waits for the next minute of the rate limit, should it have to. */
const TOTAL_MS = 75_000;
const RETRIES = 2;
/** The most that a page can have: as few calls as possible. */
const PAGE = 100;
const SANDBOX = '/v1/sandbox/credit-applications';

export interface ClientOptions {
  /** The address you were given, `https://…`. */
  readonly baseUrl: string;
  /** `sk_test_…` or `sk_live_…`. Use it on servers only. */
  readonly apiKey: string;
  /** Yours: a letter `P` and six digits. */
  readonly partnerId: string;
  /** Longest wait for a quote in milliseconds, repetitions included; default: 10,000. */
  readonly timeoutMs?: number;
  /** Most repetitions of a call that failed; default: 2. */
  readonly retries?: number;
  /** In place of the global fetch, for example with a proxy. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/**
 * Every method throws ApiError for what the service refuses, and a TypeError or TimeoutError of fetch when it cannot be reached in
 * time. A call is repeated after a 429 `RATE_LIMIT_EXCEEDED`, when the wait fits into its time; after a 5xx or without an answer only where doing it twice does no harm:
 * reads, dry runs, and quotes.
 */
export interface Client {
  /** What finance a shopper can be offered. Asking again makes another quote. It goes ahead of what waits for the pace. */
  quote(input: QuoteInput, options?: CallOptions): Promise<Quote>;
  /** Has a signed test event sent to the endpoint that is registered for the key's environment. */
  sendTestNotification(options?: CallOptions & { readonly lender?: TestLender }): Promise<TestNotification>;
  /**
   * What you were or will be sent, newest first; all pages, one call each as they are needed: `for await (const one of …)`.
   * @param filter.limit notifications to a page, 1 to 100; default: 100.
   */
  listNotifications(
    filter?: NotificationFilter,
    options?: CallOptions,
  ): AsyncGenerator<NotificationSummary, void, undefined>;
  getNotification(notificationId: string, options?: CallOptions): Promise<Notification>;
  /** Sends one again that has ended or is held. */
  resendNotification(notificationId: string, options?: CallOptions): Promise<Resend>;
  /** How many `recoverNotifications` would send again. */
  countMissed(span: Span, options?: CallOptions): Promise<{ readonly matched: number }>;
  /** Sends again all that is failed, held or expired of a span, which may begin at most 30 days ago. */
  recoverNotifications(
    span: Span,
    options?: CallOptions,
  ): Promise<{ readonly recovery_id: string; readonly matched: number }>;
  /** How far a recovery has come. */
  getRecovery(recoveryId: string, options?: CallOptions): Promise<Recovery>;
  /** Where an application stands, with each of its events. */
  getCreditApplication(applicationId: string, options?: CallOptions): Promise<CreditApplication>;
  /** Opens an application of which you play the lender; with a sandbox key only. */
  simulateApplication(input: Simulation, options?: CallOptions): Promise<CreditApplication>;
  /** Brings such an application into another state. */
  simulateEvent(
    applicationId: string,
    status: ApplicationStatus,
    options?: CallOptions,
  ): Promise<CreditApplication>;
  /** Where webhooks go, since when that fails or is disabled, and how many notifications are held. */
  getWebhookEndpoint(options?: CallOptions): Promise<WebhookEndpoint>;
  /** The public keys that webhooks are signed with now. See `createWebhookVerifier`. */
  listWebhookKeys(options?: CallOptions): Promise<readonly WebhookKey[]>;
}

/**
 * Opens nothing yet: connections are those of fetch.
 * @throws TypeError when an option is missing, no header can carry `apiKey`, or `baseUrl` does not begin with `https://`.
 */
export function createClient(options: ClientOptions): Client {
  const { baseUrl, apiKey, partnerId, timeoutMs = QUOTE_TIMEOUT_MS, retries = RETRIES } = options;
  for (const [name, value] of Object.entries({ baseUrl, apiKey }))
    if (!value) throw new TypeError(`${name} is missing`);
  // The error of fetch would show it, with every call.
  if (!/^[!-~]+$/.test(apiKey.trim()))
    throw new TypeError(
      'apiKey has white space or a character beyond ASCII in it: was it copied whole, and alone?',
    );
  if (!baseUrl.startsWith('https://')) throw new TypeError('baseUrl must begin with https://');
  const send = createHttp({ baseUrl, apiKey, retries, fetch: options.fetch });

  const usual = { attemptMs: TIMEOUT_MS, totalMs: TOTAL_MS, canWait: true } as const;
  const get = <T>(path: string, options: CallOptions = {}, more: Partial<Call> = {}) =>
    send<T>({ ...usual, ...more, ...options, method: 'GET', path, repeatable: true });
  const post = <T>(path: string, options: CallOptions = {}, more: Partial<Call> = {}) =>
    send<T>({ ...usual, repeatable: false, ...more, ...options, method: 'POST', path });
  const spanOf = ({ created_from, created_to }: Span) => ({
    created_from: isoText(created_from),
    created_to: isoText(created_to),
  });

  return {
    quote: (input, options) =>
      post('/v1/finance-quote', options, {
        body: { ...input, partner_id: partnerId },
        attemptMs: timeoutMs,
        totalMs: timeoutMs,
        repeatable: true,
        canWait: false,
      }),
    sendTestNotification: ({ lender, ...options } = {}) =>
      post('/v1/notifications/test', options, { query: { lender }, attemptMs: TEST_TIMEOUT_MS }),
    async *listNotifications(filter = {}, options) {
      const { created_from, created_to, ...rest } = filter;
      const query = {
        limit: PAGE,
        ...rest,
        created_from: created_from && isoText(created_from),
        created_to: created_to && isoText(created_to),
      };
      type Page = { notifications: NotificationSummary[]; next_cursor: string | null };
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page: Page = await get<Page>('/v1/notifications', options, { query: { ...query, cursor } });
        yield* page.notifications;
        cursor = page.next_cursor;
      }
    },
    getNotification: (id, options) => get(`/v1/notifications/${encodeURIComponent(id)}`, options),
    resendNotification: (id, options) => post(`/v1/notifications/${encodeURIComponent(id)}/resend`, options),
    countMissed: (span, options) =>
      post('/v1/notifications/recover', options, {
        body: { ...spanOf(span), dry_run: true },
        repeatable: true,
      }),
    recoverNotifications: (span, options) =>
      post('/v1/notifications/recover', options, { body: spanOf(span) }),
    getRecovery: (id, options) => get(`/v1/notifications/recoveries/${encodeURIComponent(id)}`, options),
    getCreditApplication: (id, options) => get(`/v1/credit-applications/${encodeURIComponent(id)}`, options),
    simulateApplication: (body, options) => post(SANDBOX, options, { body }),
    simulateEvent: (id, status, options) =>
      post(`${SANDBOX}/${encodeURIComponent(id)}/events`, options, { body: { status } }),
    getWebhookEndpoint: (options) => get('/v1/webhook-endpoint', options),
    async listWebhookKeys(options) {
      // A webhook waits for it.
      const more = { canWait: false };
      return (await get<{ keys: readonly WebhookKey[] }>('/v1/webhook-keys', options, more)).keys;
    },
  };
}

const isoText = (at: Date | string): string => (typeof at === 'string' ? at : at.toISOString());
