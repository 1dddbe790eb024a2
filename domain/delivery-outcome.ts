import type { EndState } from './notification-states';

/** Why an attempt failed, without a full stop. All are the partner's failures; our own faults are thrown. */
const FAILURES = {
  /** An answer outside 2xx, 3xx and 410. */
  http_status: 'answered STATUS',
  redirect: 'answered STATUS, a redirect, which is not followed',
  gone: 'answered 410: the endpoint wants no more',
  connect: 'no connection',
  timeout: 'no answer in time',
  tls: 'TLS failed: check the certificate and its chain',
  dns: 'the name does not resolve',
  reset: 'connection ended before an answer',
  blocked_address: 'not sent: the URL or its address is not a public one',
  protocol: 'the answer is not HTTP/1.1',
} as const;
export type DeliveryFailure = keyof typeof FAILURES;

/** Why an answer is not HTTP/1.1 in our reading. These words are ours, as workflow history contains them. */
export const PROTOCOL_REASONS = {
  headers: 'its headers are over 16 KiB',
  lengths: 'it has two Content-Length headers, or both Content-Length and Transfer-Encoding',
  length: 'its Content-Length is no number',
  coding: 'its Transfer-Encoding cannot be read',
  header: 'a header is not of the form "name: value"',
  line_end: 'a line of its head does not end with CR LF',
  status: 'its status is not three digits',
  version: 'it is of another version or protocol',
  informational: 'more than 20 informational answers, or 16 KiB of them, come first',
  upgrade: '101 answers a request that asked for no upgrade',
  early: 'it began before the request was sent',
  unreadable: 'it cannot be read',
} as const;
export type ProtocolReason = keyof typeof PROTOCOL_REASONS;

/** The outcome of one attempt. It is safe to store in workflow history, as it has no secrets. */
export type DeliveryOutcome =
  | { readonly kind: 'delivered'; readonly httpStatus: number; readonly durationMs: number }
  | {
      readonly kind: 'failed';
      readonly failure: DeliveryFailure;
      readonly httpStatus: number | null;
      /** Whole milliseconds from the first DNS query to the decision. */
      readonly durationMs: number;
      /** The answer's Retry-After in milliseconds from then; null when it has none that can be read. */
      readonly retryAfterMs: number | null;
      /** Of the failure `protocol`. */
      readonly reason?: ProtocolReason;
    }
  /** No head of HTTP came, by our own fault (domain/our-outage.ts). It spends no step and no endpoint's health. */
  | {
      readonly kind: 'ours';
      readonly failure: DeliveryFailure;
      readonly httpStatus: null;
      readonly durationMs: number;
      /** Wait before the next attempt, in milliseconds. */
      readonly waitMs: number;
      /** Since when our network reaches nobody, Unix milliseconds; null: only this machine or this attempt failed. */
      readonly sinceMs: number | null;
    };

/** The outcome of one POST with the partner's answer, which is not for workflow history. */
export interface SentWebhook {
  readonly outcome: DeliveryOutcome;
  /** The first 8 KiB of the answer; null when there was none. */
  readonly answer: string | null;
  readonly address: string | null;
  /** What its name was resolved to in this attempt; empty on a kept connection. */
  readonly addresses: readonly string[];
  /** A word about a failure without an answer, such as `ECONNREFUSED`. */
  readonly detail: string | null;
  /** How far our clock is ahead of the answer's Date header, in milliseconds, to a second. */
  readonly clockSkewMs: number | null;
}

export function outcomeOfStatus(
  httpStatus: number,
  durationMs: number,
  retryAfterMs: number | null,
): DeliveryOutcome {
  if (httpStatus >= 200 && httpStatus <= 299) return { kind: 'delivered', httpStatus, durationMs };
  const redirect = httpStatus >= 300 && httpStatus <= 399;
  const failure = httpStatus === 410 ? 'gone' : redirect ? 'redirect' : 'http_status';
  return { kind: 'failed', failure, httpStatus, durationMs, retryAfterMs };
}

export function describeOutcome(outcome: DeliveryOutcome): string {
  const took = outcome.durationMs < 1_000 ? `${outcome.durationMs} ms` : seconds(outcome.durationMs);
  if (outcome.kind === 'delivered') return `delivered: ${outcome.httpStatus} (${took})`;
  if (outcome.kind === 'ours')
    return `does not count, the fault is ours: ${FAILURES[outcome.failure]} (${took})`;
  const asks = outcome.retryAfterMs === null ? '' : `; asks to wait ${seconds(outcome.retryAfterMs)}`;
  const failure = FAILURES[outcome.failure].replace('STATUS', String(outcome.httpStatus));
  const why = outcome.reason === undefined ? '' : `: ${PROTOCOL_REASONS[outcome.reason]}`;
  return `${failure}${why} (${took})${asks}`;
}

export function seconds(ms: number): string {
  return `${Number((ms / 1_000).toFixed(1))} s`;
}

/** An endpoint is disabled after failing this long … */
const DISABLE_AFTER_HOURS = 120;
/** … and this often, as a few failures say little about an endpoint with little traffic. */
const DISABLE_AFTER_FAILURES = 20;
/** Operators are warned when it has failed for this long. */
export const WARN_AFTER_HOURS = [24, 48, 96] as const;

/**
 * What a failure means for its endpoint: disable it, warn of the longest time reached, or neither.
 * @param endpoint with this failure: `hours` since the first failure after the last success, and the
 * `warnedHours` that operators have been warned of (0: not yet)
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

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Wait before each attempt, in milliseconds: 11 over 75.6 h, to last from Friday evening to Monday. */
export const DELIVERY_LADDER_MS: readonly number[] = [
  0,
  5 * SECOND_MS,
  1 * MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/** The same for tests: a person is waiting, and a test must not occupy its unit of the quota for days. */
export const TEST_LADDER_MS: readonly number[] = [0, 5 * SECOND_MS, 30 * SECOND_MS];

/** Why a delivery waits, as Temporal's page says it. */
const WAITS = {
  ladder: 'retry ladder',
  retry_after: 'the endpoint asked for it (Retry-After)',
  busy: 'no slot is free for a send to this endpoint',
  outage: 'an attempt failed by a fault of ours',
  paused: 'paused by an operator',
} as const;

export interface Wait {
  readonly kind: 'wait';
  readonly because: keyof typeof WAITS;
  /** Attempts that were made before. */
  readonly attempts: number;
  /** Whole milliseconds; null until an order ends it. */
  readonly waitMs: number | null;
  /** The same as a moment, Unix milliseconds. */
  readonly untilMs: number | null;
  /** Since when it is paused, or our network reaches nobody, Unix milliseconds. */
  readonly sinceMs: number | null;
}

/** The notification has ended or is held, or a later generation goes on (`superseded`, `paused`, `queued`). */
export interface Over {
  readonly kind: 'over';
  readonly status: EndState | 'held' | 'superseded' | 'paused' | 'queued';
  readonly reason: string | null;
}

/** What the workflow of a delivery does next. `due`: it asks again at once. */
export type Next = Wait | Over | { readonly kind: 'due' };

/** A moment for people, to the second. @param ms Unix milliseconds */
export const utc = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`;

export function describeWait({ because, untilMs, sinceMs, attempts }: Wait): string {
  if (because === 'paused') return `Paused by an operator since ${utc(sinceMs ?? 0)}, until it is resumed`;
  const why =
    because === 'outage' && sinceMs !== null
      ? `our network cannot reach anybody since ${utc(sinceMs)}`
      : WAITS[because];
  return `Waits until ${utc(untilMs ?? 0)} for attempt ${attempts + 1}: ${why}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH = `(?<month>${MONTHS.join('|')})`;
const SHORT_DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)';
const TIME = String.raw`(?<time>\d{2}:\d{2}:\d{2})`;

/**
 * The three forms of an HTTP-date (RFC 9110, 5.6.7): IMF-fixdate, RFC 850 and asctime. Formatters of mail's dates write the first one too: Java's
 * with a day of one digit, Go's with UTC, those of PHP and Python with an offset.
 */
const HTTP_DATES = [
  String.raw`${SHORT_DAY}, (?<day>\d{1,2}) ${MONTH} (?<year>\d{4}) ${TIME} (?:GMT|UTC|[+-]0000)`,
  String.raw`${LONG_DAY}, (?<day>\d{2})-${MONTH}-(?<year>\d{2}) ${TIME} GMT`,
  String.raw`${SHORT_DAY} ${MONTH} (?<day>[ \d]\d) ${TIME} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`));

/** More is read as twenty days, which fits a Postgres `integer`. */
const LONGEST_MS = 20 * 86_400_000;

/**
 * Reads a Retry-After header: whole seconds, or an HTTP-date in any of its three forms.
 * @param nowMs Unix milliseconds, for dates
 * @returns milliseconds from now, 0 for a past date, at most twenty days; null for neither form
 */
export function parseRetryAfter(text: string, nowMs: number): number | null {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Math.min(Number(trimmed) * 1_000, LONGEST_MS);
  const atMs = parseHttpDate(trimmed, nowMs);
  return atMs === null ? null : Math.min(Math.max(atMs - nowMs, 0), LONGEST_MS);
}

/**
 * Reads an HTTP-date in any of its three forms. A leap second counts as the second after it.
 * @returns Unix milliseconds; null when it is none, or names no day or time that there is
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  const found = HTTP_DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (found === undefined) return null;
  const { year = '', month = '', day = '', time = '' } = found;
  const [hour = 0, minute = 0, second = 0] = time.split(':').map(Number);
  if (hour > 23 || minute > 59 || second > 60) return null;
  const date = new Date(0);
  date.setUTCFullYear(fullYear(year, nowMs), MONTHS.indexOf(month), Number(day));
  // A day that the month does not have has moved the date into the next one.
  return date.getUTCDate() === Number(day) ? date.setUTCHours(hour, minute, second, 0) : null;
}

/** A year of two digits more than 50 years ahead lies in the past (RFC 9110, 5.6.7). */
function fullYear(text: string, nowMs: number): number {
  if (text.length === 4) return Number(text);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(text);
  return year > thisYear + 50 ? year - 100 : year;
}
