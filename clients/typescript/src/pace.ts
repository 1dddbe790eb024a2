/** How fast calls that can wait may go. */
export interface Pace {
  /** Milliseconds to wait before a call that can; counts it as made. */
  waitMs(nowMs: number): number;
  /** Takes what an answer says of the limit. */
  observe(headers: Headers, nowMs: number): void;
}

/**
 * Spreads what is left of the key's requests over the rest of the minute, once less than half of them is: paging never takes the last
 * of them from a checkout that uses the same key.
 */
export function createPace(): Pace {
  let limit = 0;
  let remaining = Number.POSITIVE_INFINITY;
  let resetAtMs = 0;
  let lastAtMs = 0;
  return {
    waitMs(nowMs) {
      const left = remaining;
      remaining -= 1;
      if (nowMs >= resetAtMs || left * 2 >= limit) return 0;
      // Behind one another, however many ask at once.
      const gapMs = (resetAtMs - nowMs) / Math.max(left, 1);
      lastAtMs = Math.min(Math.max(nowMs, lastAtMs) + gapMs, resetAtMs);
      return lastAtMs - nowMs;
    },
    observe(headers, nowMs) {
      const [all, left, seconds] = ['limit', 'remaining', 'reset'].map((name) =>
        Number(headers.get(`ratelimit-${name}`) ?? Number.NaN),
      ) as [number, number, number];
      if (!Number.isFinite(all + left + seconds)) return;
      [limit, remaining, resetAtMs] = [all, left, nowMs + seconds * 1_000];
    },
  };
}
