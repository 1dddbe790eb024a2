import type { SendWebhook } from '../activities';

/** One partner's clock may be wrong; that of most of three or more is not. */
const LEAST_HOSTS = 3;
const MOST_HOSTS = 31;
/** An older answer says nothing about the clock now. */
const OLDEST_MS = 15 * 60_000;
/** Receivers commonly refuse signatures that are 5 minutes off: the warning comes before that. */
const TOO_FAR_MS = 2 * 60_000;
/** How often the warning is repeated while the clock stays wrong. */
const REMIND_MS = 10 * 60_000;

/** Compares this machine's clock with the partners' clocks, by the Date header of their answers. */
interface ClockWatch {
  /** @param skewMs how far our clock is ahead of that host's. */
  readonly observe: (host: string, skewMs: number) => void;
  /** How far our clock is ahead of most of theirs, in milliseconds; null while too few have answered. */
  readonly skewMs: () => number | null;
}

interface ClockWatchDeps {
  readonly monotonicMs: () => number;
  /** Our clock is more than two minutes off. Called at once, then every ten minutes. */
  readonly onSkew: (skewMs: number, hosts: number) => void;
}

/** Remembers the last answer of each of the 31 hosts that answered last. */
export function createClockWatch({ monotonicMs, onSkew }: ClockWatchDeps): ClockWatch {
  const answers = new Map<string, { skewMs: number; atMs: number }>();
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  const recent = () => {
    const fromMs = monotonicMs() - OLDEST_MS;
    return [...answers.values()].flatMap(({ skewMs, atMs }) => (atMs >= fromMs ? [skewMs] : []));
  };
  return {
    observe(host, skewMs) {
      // Deleted first, so that the map is in the order of the answers.
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
    },
    skewMs: () => medianOf(recent()),
  };
}

/** Passes the clocks of the answers on to the watch. */
export function observedBy(clock: ClockWatch, send: SendWebhook): SendWebhook {
  return async (request) => {
    const result = await send(request);
    if (typeof result.clockSkewMs === 'number') {
      clock.observe(new URL(request.url).hostname, result.clockSkewMs);
    }
    return result;
  };
}

/** Of the two middle ones the one nearer to zero: half of the hosts are no majority. */
function medianOf(skews: readonly number[]): number | null {
  if (skews.length < LEAST_HOSTS) return null;
  const sorted = skews.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  const high = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return Math.abs(low) <= Math.abs(high) ? low : high;
}
