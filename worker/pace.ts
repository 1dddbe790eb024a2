/** Most starts take 5 to 50 ms: Temporal has more to do than it can when one takes so long. */
const SLOW_START_MS = 500;
const LEAST_STARTS = 4;
/** Starts that are slow together count once. */
const LESS_EVERY_MS = 1_000;

export type StartLimit = ReturnType<typeof createStartLimit>;

/**
 * Decides how many starts may be under way: a slow one halves the number, and as many quick ones add one, as in TCP. Without it
 * several workers give Temporal more than it can do, it misses its own deadlines, and almost nothing is delivered.
 * @param atMost while Temporal is quick; 4 or more
 */
export function createStartLimit(atMost: number, monotonicMs: () => number) {
  let most = atMost;
  let lessAtMs = Number.NEGATIVE_INFINITY;
  return {
    most: (): number => Math.floor(most),
    /** @param tookMs of a start, whatever became of it */
    ended(tookMs: number): void {
      if (tookMs < SLOW_START_MS) most = Math.min(atMost, most + 1 / most);
      else if (monotonicMs() - lessAtMs >= LESS_EVERY_MS) {
        lessAtMs = monotonicMs();
        most = Math.max(LEAST_STARTS, most / 2);
      }
    },
  };
}

/** Share of the time that claims may take in the long run. */
const CLAIM_SHARE = 1 / 4;
/** Milliseconds by which claims may exceed that share: a dozen claims on a quiet machine. */
const FREE_MS = 20;
/** A larger excess is forgotten, so that one slow claim delays the next ones by a second at most. */
const LONGEST_LEAD_MS = 100;
/** Longest rest, in milliseconds. */
const LONGEST_REST_MS = 50;
/** With so many starts under way, a claimed notification would wait for Temporal anyway. */
const MANY_STARTS = 4;
/**
 * Shortest time between two claims then, in milliseconds. A claim of one costs nearly as much as a
 * claim of ten.
 */
const CLAIM_GATHER_MS = 40;

/** Spaces claims under load, so that each takes more notifications at once. */
export function createClaimPace(monotonicMs: () => number) {
  const budget = { leadMs: 0, atMs: monotonicMs(), lastClaimMs: Number.NEGATIVE_INFINITY };
  const leadNow = () => {
    const nowMs = monotonicMs();
    budget.leadMs = Math.max(0, budget.leadMs - (nowMs - budget.atMs) * CLAIM_SHARE);
    budget.atMs = nowMs;
    return budget.leadMs;
  };
  return {
    spent(ms: number): void {
      budget.leadMs = Math.min(leadNow() + ms, LONGEST_LEAD_MS);
      budget.lastClaimMs = budget.atMs;
    },
    /**
     * Milliseconds until the next claim may begin, at most 50.
     * @param starting workflows that are being started.
     */
    restMs(starting: number): number {
      const forShare = (leadNow() - FREE_MS) / CLAIM_SHARE;
      const forStarts = starting < MANY_STARTS ? 0 : budget.lastClaimMs + CLAIM_GATHER_MS - budget.atMs;
      return Math.min(Math.max(0, forShare, forStarts), LONGEST_REST_MS);
    },
  };
}
