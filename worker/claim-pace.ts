/** Claims may take a quarter of the time; more than that has to be made up for. */
const SHARE = 1 / 4;
/** What may be owed before anybody has to wait, in milliseconds of claims: a dozen on a quiet machine. */
const OWED_MS = 20;
/** More is forgiven, so that one slow claim slows the next ones for a second at most. */
const MOST_OWED_MS = 100;
/** Nobody waits for longer than this because others' claims have just been made, in milliseconds. */
const LONGEST_REST_MS = 50;
/** While so many workflows are being started, what is due would wait for Temporal: it waits for the next claim instead, which takes all of it. */
const MANY_STARTS = 4;
/** Between two claims then, in milliseconds: a claim of one costs nearly as much as a claim of ten. */
const GATHER_MS = 40;

/** Keeps claims from following one another without end: what comes in a crowd goes with the next one. */
interface ClaimPace {
  /** A claim has taken so many milliseconds. */
  spent(ms: number): void;
  /**
   * How long to rest before the next one: 0 unless there have been many of late, or many starts are under way; at most 50 ms.
   * @param starting workflows that are being started.
   */
  restMs(starting: number): number;
}

export function createClaimPace(monotonicMs: () => number): ClaimPace {
  let owedMs = 0;
  let sinceMs = monotonicMs();
  let lastMs = Number.NEGATIVE_INFINITY;
  const owed = () => {
    const now = monotonicMs();
    owedMs = Math.max(0, owedMs - (now - sinceMs) * SHARE);
    sinceMs = now;
    return owedMs;
  };
  return {
    spent(ms) {
      owedMs = Math.min(owed() + ms, MOST_OWED_MS);
      lastMs = sinceMs;
    },
    restMs(starting) {
      const owing = (owed() - OWED_MS) / SHARE;
      const gathering = starting >= MANY_STARTS ? lastMs + GATHER_MS - sinceMs : 0;
      return Math.min(Math.max(0, owing, gathering), LONGEST_REST_MS);
    },
  };
}
