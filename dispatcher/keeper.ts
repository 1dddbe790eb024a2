import type { EndpointQueue } from '../db/notifications/hold';
import type { OperatorEvent } from '../db/audit/operator-events';
import { startLoop, type Loop } from '../timing/loop';

/** Notifications moved in one transaction: some tens of milliseconds of row locks. */
const BATCH = 200;
/** Warnings are given once a day; looking for them reads all that is about to expire. */
const WARN_EVERY_MS = 300_000;

interface KeeperDeps {
  readonly queuesToHold: () => Promise<readonly EndpointQueue[]>;
  readonly hold: (queue: EndpointQueue, limit: number) => Promise<number>;
  readonly queuesToRelease: () => Promise<readonly EndpointQueue[]>;
  readonly release: (queue: EndpointQueue, limit: number) => Promise<number>;
  readonly expire: (limit: number) => Promise<readonly OperatorEvent[]>;
  readonly warn: () => Promise<readonly OperatorEvent[]>;
  readonly onMoved: (what: 'held' | 'released', queue: EndpointQueue, count: number) => void;
  readonly onEvent: (event: OperatorEvent) => void;
  readonly onError: (error: unknown, what: string) => void;
  readonly monotonicMs: () => number;
  /** Longest time until what was not heard of is found, in milliseconds. */
  readonly everyMs: number;
}

/**
 * Holds notifications for which there is no endpoint, releases them in sequence once there is one, and lets them expire.
 * Every worker runs one; row locks keep them out of each other's way. It needs no Temporal.
 */
export function startKeeper(deps: KeeperDeps): Loop {
  const { onError, everyMs, monotonicMs } = deps;
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  async function round(stopped: () => boolean): Promise<void> {
    await move('held', deps.queuesToHold, deps.hold, stopped);
    await move('released', deps.queuesToRelease, deps.release, stopped);
    for (let more = true; more && !stopped();) {
      const expired = await deps.expire(BATCH);
      expired.forEach(deps.onEvent);
      more = expired.length > 0;
    }
    if (stopped() || monotonicMs() - warnedAtMs < WARN_EVERY_MS) return;
    (await deps.warn()).forEach(deps.onEvent);
    warnedAtMs = monotonicMs();
  }

  /** Batch by batch, queue after queue, so that one partner's backlog holds up no other's. */
  async function move(
    what: 'held' | 'released',
    queues: KeeperDeps['queuesToHold'],
    one: KeeperDeps['hold'],
    stopped: () => boolean,
  ): Promise<void> {
    const totals = new Map<EndpointQueue, number>();
    try {
      for (let left = await queues(); left.length > 0;) {
        const full: EndpointQueue[] = [];
        for (const queue of left) {
          if (stopped()) return;
          const count = await one(queue, BATCH);
          if (count > 0) totals.set(queue, (totals.get(queue) ?? 0) + count);
          if (count === BATCH) full.push(queue);
        }
        left = full;
      }
    } finally {
      for (const [queue, count] of totals) deps.onMoved(what, queue, count);
    }
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => onError(error, 'held notifications could not be looked after'),
  });
}
