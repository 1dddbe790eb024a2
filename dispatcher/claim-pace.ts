/** Claims may take a quarter of the time; more than that has to be made up for. */
const SHARE = 1 / 4;
/** What may be owed before anybody has to wait, in milliseconds of claims: a dozen on a quiet machine. */
const OWED_MS = 20;
/** More is forgiven, so that one slow claim slows the next ones for a second at most. */
const MOST_OWED_MS = 100;
/** Nobody waits for longer than this because others' claims have just been made, in milliseconds. */
const LONGEST_REST_MS = 50;

/** Keeps claims from following one another without end: what comes in a crowd goes with the next one. */
interface ClaimPace {
  /** A claim has taken so many milliseconds. */
  spent(ms: number): void;
  /** How long to rest before the next one: 0 unless there have been many of late; at most 50 ms. */
  restMs(): number;
}

export function createClaimPace(monotonicMs: () => number): ClaimPace {
  let owedMs = 0;
  let sinceMs = monotonicMs();
  const owed = () => {
    const now = monotonicMs();
    owedMs = Math.max(0, owedMs - (now - sinceMs) * SHARE);
    sinceMs = now;
    return owedMs;
  };
  return {
    spent(ms) {
      owedMs = Math.min(owed() + ms, MOST_OWED_MS);
    },
    restMs: () => Math.min(Math.max(0, (owed() - OWED_MS) / SHARE), LONGEST_REST_MS),
  };
}
