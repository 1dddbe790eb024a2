import type { SendWebhook } from '../activities';

/** A single partner's clock may be wrong. The median of three or more is reliable. */
const LEAST_HOSTS = 3;
const MOST_HOSTS = 31;
/** Older answers are ignored. */
const OLDEST_MS = 15 * 60_000;
/** Receivers commonly refuse signatures that are 5 minutes off. The warning comes earlier. */
const TOO_FAR_MS = 2 * 60_000;
/** The warning is repeated this often. */
const REMIND_MS = 10 * 60_000;

interface ClockWatchDeps {
  readonly monotonicMs: () => number;
  /** Called when our clock is more than two minutes off, and then every ten minutes. */
  readonly onSkew: (skewMs: number, hosts: number) => void;
}

/** Compares the clock of this machine with those of the 31 hosts that answered last (Date header). */
export function createClockWatch({ monotonicMs, onSkew }: ClockWatchDeps) {
  const answers = new Map<string, { skewMs: number; atMs: number }>();
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  const recent = () => {
    const fromMs = monotonicMs() - OLDEST_MS;
    return [...answers.values()].flatMap(({ skewMs, atMs }) => (atMs >= fromMs ? [skewMs] : []));
  };
  function observe(host: string, skewMs: number): void {
    // Deleting first keeps the map in the order of the answers.
    answers.delete(host);
    answers.set(host, { skewMs, atMs: monotonicMs() });
    const [oldest] = answers.keys();
    if (answers.size > MOST_HOSTS && oldest !== undefined) answers.delete(oldest);
    const skews = recent();
    const most = medianOf(skews);
    if (most === null || Math.abs(most) <= TOO_FAR_MS) warnedAtMs = Number.NEGATIVE_INFINITY;
    else if (monotonicMs() - warnedAtMs >= REMIND_MS) {
      warnedAtMs = monotonicMs();
      onSkew(most, skews.length);
    }
  }
  return {
    observe,
    observed:
      (send: SendWebhook): SendWebhook =>
      async (request) => {
        const result = await send(request);
        if (result.clockSkewMs !== null) observe(new URL(request.url).hostname, result.clockSkewMs);
        return result;
      },
    /** How far our clock is ahead of theirs, in milliseconds (median); null while too few have answered. */
    skewMs: (): number | null => medianOf(recent()),
  };
}

/** Of two middle values the one nearer to zero counts: half of the hosts are no majority. */
function medianOf(skews: readonly number[]): number | null {
  if (skews.length < LEAST_HOSTS) return null;
  const sorted = skews.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  const high = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return Math.abs(low) <= Math.abs(high) ? low : high;
}
