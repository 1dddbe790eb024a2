/** When something succeeded, and when nobody could expect it to. */
export interface Timeline {
  mark(): void;
  /** Time from now on, until the returned function is called, that does not count. */
  excuse(): () => void;
  /** Longest time without a success since a moment of `performance.now()`, until now, in seconds. */
  longestPauseS(sinceMs: number): number;
}

export function openTimeline(): Timeline {
  const marks: number[] = [];
  const excuses: { readonly fromMs: number; untilMs: number }[] = [];
  const excusedMs = (fromMs: number, untilMs: number) =>
    excuses.reduce(
      (sum, one) => sum + Math.max(0, Math.min(untilMs, one.untilMs) - Math.max(fromMs, one.fromMs)),
      0,
    );
  return {
    mark: () => void marks.push(performance.now()),
    excuse() {
      const one = { fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
      excuses.push(one);
      return () => void (one.untilMs = performance.now());
    },
    longestPauseS(sinceMs) {
      const since = [...marks.filter((ms) => ms >= sinceMs), performance.now()];
      const gaps = since.map((ms, at) => {
        const before = since[at - 1] ?? sinceMs;
        return ms - before - excusedMs(before, ms);
      });
      return Math.round(Math.max(...gaps) / 100) / 10;
    },
  };
}
