import { median } from '../rounds';
import { storeChange } from './feed';
import type { Moment } from './messages';
import { monotonicMs } from './monotonic';
import { latencies, pause, settled } from './rounds';
import type { Stage } from './stage';

/** How much one partner's trouble costs the others. */
export interface Isolation {
  /** The other partners' p95 from commit to arrival, ms. */
  readonly withoutMs: number;
  readonly withMs: number;
  /** Median over the pairs of with / without, less 1. */
  readonly shift: number;
}

export interface IsolationOptions {
  readonly pairs: number;
  /** Notifications of the others in each half of a pair. */
  readonly count: number;
  /** Milliseconds between two of them: their load does not depend on how fast it is served. */
  readonly everyMs: number;
  /** Notifications due to the partner whose endpoint hangs. */
  readonly due: number;
}

/** Above what a fault of isolation could take, under the time that the sends to the hanging endpoint have (15 s). */
const PATIENCE_MS = 12_000;

/** The others' latency with and without a partner whose endpoint hangs and to whom much is due, in turn. */
export async function measureIsolation(stage: Stage, options: IsolationOptions): Promise<Isolation> {
  const { slow, receivers, database } = stage;
  const pairs: { without: number; with: number }[] = [];
  for (let at = 0; at < options.pairs; at += 1) {
    const without = await othersP95(stage, options);
    receivers.hang([slow.host]);
    await Promise.all(Array.from({ length: options.due }, () => storeChange(database, slow.partnerId)));
    await pause(1_000);
    pairs.push({ without, with: await othersP95(stage, options) });
    receivers.hang([]);
    await settled(stage);
  }
  return {
    withoutMs: median(pairs.map((pair) => pair.without)),
    withMs: median(pairs.map((pair) => pair.with)),
    shift: median(pairs.map((pair) => pair.with / pair.without)) - 1,
  };
}

/** p95 of the others' notifications from commit to arrival, ms. */
export async function othersP95(
  stage: Stage,
  { count, everyMs }: Pick<IsolationOptions, 'count' | 'everyMs'>,
): Promise<number> {
  const { receivers, partners, database } = stage;
  receivers.arrivals.clear();
  receivers.onArrival = () => undefined;
  const storing: Promise<Moment>[] = [];
  const startedAt = performance.now();
  for (let at = 0; at < count; at += 1) {
    await pause(Math.max(0, startedAt + at * everyMs - performance.now()));
    const partnerId = partners[at % partners.length] ?? '';
    storing.push(storeChange(database, partnerId));
  }
  const moments = await Promise.all(storing);
  const deadline = performance.now() + PATIENCE_MS;
  const arrived = () => moments.every(([eventId]) => receivers.arrivals.has(eventId));
  while (!arrived() && performance.now() < deadline) await pause(5);
  // What has not come counts with the time it has taken so far.
  const now = monotonicMs();
  const known = new Map(moments.map(([eventId]) => [eventId, receivers.arrivals.get(eventId) ?? now]));
  return latencies(moments, known).p95Ms;
}
