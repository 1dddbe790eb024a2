/**
 * Why an attempt failed, described without a full stop. All are the partner's failures: our own faults are thrown, and are never
 * an outcome.
 */
const FAILURES = {
  /** An answer outside 2xx, 3xx and 410. */
  http_status: 'answered STATUS',
  redirect: 'answered STATUS, a redirect, which is not followed',
  gone: 'answered 410: the endpoint wants no more',
  /** Refused, no route, or no connection in time. */
  connect: 'no connection',
  timeout: 'no answer in time',
  tls: 'TLS failed: check the certificate and its chain',
  dns: 'the name does not resolve',
  reset: 'connection ended before an answer',
  blocked_address: 'not sent: the URL or its address is not a public one',
  protocol: 'the answer is not HTTP/1.1',
} as const;
export type DeliveryFailure = keyof typeof FAILURES;

/** The outcome of one attempt. JSON-safe, and without secrets: it may be stored in workflow history. */
export type DeliveryOutcome =
  | { readonly kind: 'delivered'; readonly httpStatus: number; readonly durationMs: number }
  | {
      readonly kind: 'failed';
      readonly failure: DeliveryFailure;
      /** Null when there was no status line. */
      readonly httpStatus: number | null;
      /** Whole milliseconds from the first DNS query to the decision. */
      readonly durationMs: number;
      /** The answer's Retry-After, in milliseconds from then; null when it has none that can be read. */
      readonly retryAfterMs: number | null;
    };

/** The outcome of one POST, with the partner's answer, which is not for workflow history. */
export interface SentWebhook {
  readonly outcome: DeliveryOutcome;
  /** The first 8 KiB of the answer; null when there was none. */
  readonly answer: string | null;
  /** The address that we were connected to; null without a connection. */
  readonly address: string | null;
  /** A word about a failure without an answer: `ECONNREFUSED`, `CERT_HAS_EXPIRED`. */
  readonly detail: string | null;
  /** How far our clock is ahead of the answer's Date header, in milliseconds, to a second; null when it has none. */
  readonly clockSkewMs: number | null;
}

/** The outcome of an answer with this status: only 2xx succeeds. */
export function outcomeOfStatus(
  httpStatus: number,
  durationMs: number,
  retryAfterMs: number | null,
): DeliveryOutcome {
  if (httpStatus >= 200 && httpStatus <= 299) return { kind: 'delivered', httpStatus, durationMs };
  return { kind: 'failed', failure: failureOfStatus(httpStatus), httpStatus, durationMs, retryAfterMs };
}

function failureOfStatus(httpStatus: number): DeliveryFailure {
  if (httpStatus === 410) return 'gone';
  return httpStatus >= 300 && httpStatus <= 399 ? 'redirect' : 'http_status';
}

/** What follows an attempt: nothing, a retry, or the end at once (410). */
export function afterOutcome(outcome: DeliveryOutcome): 'done' | 'retry' | 'stop' {
  if (outcome.kind === 'delivered') return 'done';
  return outcome.failure === 'gone' ? 'stop' : 'retry';
}

/** One line for people, without a full stop: tables, the Temporal UI, logs. */
export function describeOutcome(outcome: DeliveryOutcome): string {
  const took = outcome.durationMs < 1_000 ? `${outcome.durationMs} ms` : seconds(outcome.durationMs);
  if (outcome.kind === 'delivered') return `delivered: ${outcome.httpStatus} (${took})`;
  const asks = outcome.retryAfterMs === null ? '' : `; asks to wait ${seconds(outcome.retryAfterMs)}`;
  const failure = FAILURES[outcome.failure].replace('STATUS', String(outcome.httpStatus));
  return `${failure} (${took})${asks}`;
}

/** `2.5 s`. */
export function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(1))} s`;
}

/** An endpoint is disabled after failing this long … */
const DISABLE_AFTER_HOURS = 120;
/** … and this often: a few failures say nothing about an endpoint with little traffic. */
const DISABLE_AFTER_FAILURES = 20;
/** Operators are warned when it has failed for this long. */
export const WARN_AFTER_HOURS = [24, 48, 96] as const;

/**
 * What a failure means for its endpoint: disable it, warn of the longest of the times reached, or neither.
 * @param endpoint this failure included: `hours` since the first failure after the last success, and
 *   the `warnedHours` that operators have been warned of (0: not yet).
 */
export function judgeFailing(endpoint: {
  readonly hours: number;
  readonly failures: number;
  readonly warnedHours: number;
}): { readonly kind: 'disable' } | { readonly kind: 'warn'; readonly hours: number } | null {
  const { hours, failures, warnedHours } = endpoint;
  if (hours >= DISABLE_AFTER_HOURS && failures >= DISABLE_AFTER_FAILURES) return { kind: 'disable' };
  const reached = WARN_AFTER_HOURS.findLast((each) => hours >= each) ?? 0;
  return reached > warnedHours ? { kind: 'warn', hours: reached } : null;
}
