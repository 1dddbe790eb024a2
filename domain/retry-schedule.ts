const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Wait before each attempt, in milliseconds: 11 attempts over 75.6 h. Quick at first, for a receiver that restarts; then
 * over three days, so that one broken on a Friday evening can be repaired on Monday.
 */
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

/** The same for test events: a person is waiting, and a test must not occupy its unit of the monthly limit for days. */
export const TEST_LADDER_MS: readonly number[] = [0, 5 * SECOND_MS, 30 * SECOND_MS];

/** Longest wait that a partner's Retry-After can bring about. */
export const MAX_RETRY_AFTER_MS = 10 * HOUR_MS;

/** Jitter is at most a tenth of the step, but never under 1 s (or it spreads nothing) nor over 15 min. */
const JITTER_SHARE = 0.1;
const MIN_JITTER_MS = 1 * SECOND_MS;
const MAX_JITTER_MS = 15 * MINUTE_MS;

interface WaitInput {
  /** Wait before each attempt, the first included, in milliseconds. */
  readonly ladderMs: readonly number[];
  /** Attempts that have been made so far, 0 or more. */
  readonly attemptsMade: number;
  /** What the partner asked for with its last answer, 0 or more; null when it asked for nothing. */
  readonly retryAfterMs: number | null;
  /** A number from 0 up to, not including, 1. */
  readonly random: () => number;
}

export interface Wait {
  /** Whole milliseconds. */
  readonly waitMs: number;
  /** `busy`: enough attempts are under way to the endpoint. */
  readonly because: 'ladder' | 'retry_after' | 'busy';
}

/**
 * How long to wait before the next attempt: the later of the ladder's step, with jitter that only adds, and the
 * partner's Retry-After, which counts for at most 10 h.
 * @returns null when the ladder is exhausted.
 */
export function nextWait({ ladderMs, attemptsMade, retryAfterMs, random }: WaitInput): Wait | null {
  const stepMs = ladderMs[attemptsMade];
  if (stepMs === undefined) return null;
  const waitMs = stepMs + jitterMs(stepMs, random);
  const askedMs = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return askedMs > waitMs
    ? { waitMs: Math.ceil(askedMs), because: 'retry_after' }
    : { waitMs, because: 'ladder' };
}

function jitterMs(stepMs: number, random: () => number): number {
  if (stepMs === 0) return 0;
  const span = Math.min(Math.max(stepMs * JITTER_SHARE, MIN_JITTER_MS), MAX_JITTER_MS);
  return Math.floor(random() * span);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH = `(${MONTHS.join('|')})`;
const SHORT_DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)';
const TIME = String.raw`(\d{2}):(\d{2}):(\d{2})`;

/** The three forms of an HTTP-date (RFC 9110, 5.6.7). */
const IMF_FIXDATE = new RegExp(String.raw`^${SHORT_DAY}, (\d{2}) ${MONTH} (\d{4}) ${TIME} GMT$`);
const RFC_850 = new RegExp(String.raw`^${LONG_DAY}, (\d{2})-${MONTH}-(\d{2}) ${TIME} GMT$`);
const ASCTIME = new RegExp(String.raw`^${SHORT_DAY} ${MONTH} ([ \d]\d) ${TIME} (\d{4})$`);

/** More is read as twenty days, which fits a Postgres `integer`; no wait is that long. */
const LONGEST_MS = 20 * 86_400_000;

/**
 * Reads a Retry-After header: whole seconds, or an HTTP-date in any of its three forms.
 * @param nowMs Unix milliseconds, for dates.
 * @returns milliseconds from now, 0 for a date that has passed, at most twenty days; null for what is neither form,
 * negative numbers included.
 */
export function parseRetryAfter(text: string, nowMs: number): number | null {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Math.min(Number(trimmed) * 1_000, LONGEST_MS);
  const atMs = parseHttpDate(trimmed, nowMs);
  return atMs === null ? null : Math.min(Math.max(atMs - nowMs, 0), LONGEST_MS);
}

/**
 * Reads an HTTP-date in any of its three forms.
 * @returns Unix milliseconds; null when it is none.
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  const fixdate = IMF_FIXDATE.exec(text);
  if (fixdate !== null) {
    const [, day, month, year, ...time] = fixdate;
    return toMoment(Number(year), month, day, time);
  }
  const asctime = ASCTIME.exec(text);
  if (asctime !== null) {
    const [, month, day, hour, minute, second, year] = asctime;
    return toMoment(Number(year), month, day, [hour, minute, second]);
  }
  const rfc850 = RFC_850.exec(text);
  if (rfc850 === null) return null;
  const [, day, month, shortYear, ...time] = rfc850;
  return toMoment(fullYear(Number(shortYear), nowMs), month, day, time);
}

/** A year of two digits that would lie more than 50 years ahead lies in the past (RFC 9110, 5.6.7). */
function fullYear(shortYear: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + shortYear;
  return year > thisYear + 50 ? year - 100 : year;
}

/** Unix milliseconds; null when there is no such day or time. A leap second counts as the second after it. */
function toMoment(
  year: number,
  month: string | undefined,
  dayText: string | undefined,
  time: readonly (string | undefined)[],
): number | null {
  const day = Number(dayText);
  const [hour = 24, minute = 60, second = 61] = time.map(Number);
  if (hour > 23 || minute > 59 || second > 60) return null;
  const date = new Date(0);
  date.setUTCFullYear(year, MONTHS.indexOf(month ?? ''), day);
  // A day that the month does not have has moved the date into the next one.
  if (date.getUTCDate() !== day) return null;
  return date.setUTCHours(hour, minute, second, 0);
}
