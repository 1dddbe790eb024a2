import type { Lane } from '../db/notifications/hold';
import type { OperatorEvent } from '../db/audit/operator-events';
import { startLoop, type Loop } from '../timing/loop';

/** Notifications moved in one transaction: some tens of milliseconds of row locks. */
const BATCH = 200;
/** Warnings are given once a day; looking for them reads all that is about to expire. */
const WARN_EVERY_MS = 300_000;

export interface KeeperDeps {
  readonly lanesToHold: () => Promise<readonly Lane[]>;
  readonly hold: (lane: Lane, limit: number) => Promise<number>;
  readonly lanesToRelease: () => Promise<readonly Lane[]>;
  readonly release: (lane: Lane, limit: number) => Promise<number>;
  readonly expire: (limit: number) => Promise<readonly OperatorEvent[]>;
  readonly warn: () => Promise<readonly OperatorEvent[]>;
  readonly onMoved: (what: 'held' | 'released', lane: Lane, count: number) => void;
  readonly onEvent: (event: OperatorEvent) => void;
  readonly onError: (error: unknown, what: string) => void;
  readonly monotonicMs: () => number;
  /** Longest time until what was not heard of is found, in milliseconds. */
  readonly everyMs: number;
}

/**
 * Keeps notifications for which there is no endpoint: holds them, releases them in sequence once there is one, and lets
 * them expire. Every worker runs one; row locks keep them out of each other's way. It needs no Temporal.
 * It is woken when an endpoint has come or gone; a stop waits until the batch under way has been written down.
 */
export function startKeeper(deps: KeeperDeps): Loop {
  const { onError, everyMs, monotonicMs } = deps;
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  async function round(stopped: () => boolean): Promise<void> {
    await move('held', deps.lanesToHold, deps.hold, stopped);
    await move('released', deps.lanesToRelease, deps.release, stopped);
    for (let more = true; more && !stopped();) {
      const expired = await deps.expire(BATCH);
      expired.forEach(deps.onEvent);
      more = expired.length > 0;
    }
    if (stopped() || monotonicMs() - warnedAtMs < WARN_EVERY_MS) return;
    (await deps.warn()).forEach(deps.onEvent);
    warnedAtMs = monotonicMs();
  }

  /** Batch by batch, lane after lane, so that one partner's backlog holds up no other's. */
  async function move(
    what: 'held' | 'released',
    lanes: KeeperDeps['lanesToHold'],
    one: KeeperDeps['hold'],
    stopped: () => boolean,
  ): Promise<void> {
    const totals = new Map<Lane, number>();
    try {
      for (let left = await lanes(); left.length > 0;) {
        const full: Lane[] = [];
        for (const lane of left) {
          if (stopped()) return;
          const count = await one(lane, BATCH);
          if (count > 0) totals.set(lane, (totals.get(lane) ?? 0) + count);
          if (count === BATCH) full.push(lane);
        }
        left = full;
      }
    } finally {
      for (const [lane, count] of totals) deps.onMoved(what, lane, count);
    }
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => onError(error, 'held notifications could not be looked after'),
  });
}
