const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Wait before each attempt, in milliseconds: 11 attempts over 75.6 h. Quick at first, for a receiver that restarts; then
 * over three days, so that one broken on a Friday evening can be mended on Monday.
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

/** The same for test events: somebody is waiting, and a test must not hold its place in the monthly limit for days. */
export const TEST_LADDER_MS: readonly number[] = [0, 5 * SECOND_MS, 30 * SECOND_MS];

/** Longest wait that a partner's Retry-After can bring about. */
export const MAX_RETRY_AFTER_MS = 10 * HOUR_MS;

/** Jitter is at most a tenth of the step, but never under 1 s (or it spreads nothing) nor over 15 min. */
const JITTER_SHARE = 0.1;
const MIN_JITTER_MS = 1 * SECOND_MS;
const MAX_JITTER_MS = 15 * MINUTE_MS;

export interface WaitInput {
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
