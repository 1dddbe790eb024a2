import type { SendWebhook } from '../activities';

/** One partner's clock may be wrong; that of most of three or more is not. */
const LEAST_HOSTS = 3;
const MOST_HOSTS = 31;
/** What was heard longer ago says nothing of the clock of now. */
const OLDEST_MS = 15 * 60_000;
/** Receivers commonly refuse signatures that are 5 minutes off: tell before that. */
const TOO_FAR_MS = 2 * 60_000;
/** While it stays wrong it is told again this often. */
const REMIND_MS = 10 * 60_000;

/** Holds this machine's clock against those of the partners, by the Date header of their answers. */
interface ClockWatch {
  /** @param skewMs how far our clock is ahead of that host's. */
  readonly observe: (host: string, skewMs: number) => void;
  /** How far our clock is ahead of most of theirs, in milliseconds; null while too few have been heard. */
  readonly skewMs: () => number | null;
}

interface ClockWatchDeps {
  readonly monotonicMs: () => number;
  /** Our clock is more than two minutes off. Told at once, then every ten minutes. */
  readonly onSkew: (skewMs: number, hosts: number) => void;
}

/** Remembers the last word of each of the 31 hosts heard last. */
export function createClockWatch({ monotonicMs, onSkew }: ClockWatchDeps): ClockWatch {
  const heard = new Map<string, { skewMs: number; atMs: number }>();
  let toldAtMs = Number.NEGATIVE_INFINITY;

  const recent = () => {
    const fromMs = monotonicMs() - OLDEST_MS;
    return [...heard.values()].flatMap(({ skewMs, atMs }) => (atMs >= fromMs ? [skewMs] : []));
  };
  return {
    observe(host, skewMs) {
      // Deleted first, so that the map's order is that of the last word.
      heard.delete(host);
      heard.set(host, { skewMs, atMs: monotonicMs() });
      const [oldest] = heard.keys();
      if (heard.size > MOST_HOSTS && oldest !== undefined) heard.delete(oldest);
      const skews = recent();
      const most = medianOf(skews);
      if (most === null || Math.abs(most) <= TOO_FAR_MS) toldAtMs = Number.NEGATIVE_INFINITY;
      else if (monotonicMs() - toldAtMs >= REMIND_MS) {
        toldAtMs = monotonicMs();
        onSkew(most, skews.length);
      }
    },
    skewMs: () => medianOf(recent()),
  };
}

/** Sends, and passes the clocks of the answers on to the watch. */
export function heardBy(clock: ClockWatch, send: SendWebhook): SendWebhook {
  return async (request) => {
    const result = await send(request);
    // Whoever answered has a URL that can be parsed.
    if (typeof result.clockSkewMs === 'number') {
      clock.observe(new URL(request.url).hostname, result.clockSkewMs);
    }
    return result;
  };
}

/** Of two in the middle the one nearer to zero: half of the hosts are no majority. */
function medianOf(skews: readonly number[]): number | null {
  if (skews.length < LEAST_HOSTS) return null;
  const sorted = skews.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  const high = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return Math.abs(low) <= Math.abs(high) ? low : high;
}
