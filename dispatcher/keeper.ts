import type { Lane } from '../db/notifications/hold';
import type { OperatorEvent } from '../db/audit/operator-events';
import { createPause } from './pause';

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

export interface Keeper {
  /** An endpoint has come or gone: look at once. */
  wake(): void;
  /** Begins nothing more; resolves when the batch under way has been written down. */
  stop(): Promise<void>;
}

/**
 * Keeps notifications for which there is no endpoint: holds them, releases them in sequence once there is one, and lets
 * them expire. Every worker runs one; row locks keep them out of each other's way. It needs no Temporal.
 */
export function startKeeper(deps: KeeperDeps): Keeper {
  const { onError, everyMs, monotonicMs } = deps;
  let stopped = false;
  let woken = false;
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  const pause = createPause();

  const running = (async () => {
    while (!stopped) {
      woken = false;
      await round().catch((error: unknown) => onError(error, 'held notifications could not be looked after'));
      if (!woken && !stopped) await pause.wait(everyMs);
    }
  })();

  async function round(): Promise<void> {
    await move('held', deps.lanesToHold, deps.hold);
    await move('released', deps.lanesToRelease, deps.release);
    for (let more = true; more && !stopped;) {
      const expired = await deps.expire(BATCH);
      expired.forEach(deps.onEvent);
      more = expired.length > 0;
    }
    if (stopped || monotonicMs() - warnedAtMs < WARN_EVERY_MS) return;
    (await deps.warn()).forEach(deps.onEvent);
    warnedAtMs = monotonicMs();
  }

  /** Batch by batch, lane after lane, so that one partner's backlog holds up no other's. */
  async function move(
    what: 'held' | 'released',
    lanes: KeeperDeps['lanesToHold'],
    one: KeeperDeps['hold'],
  ): Promise<void> {
    const totals = new Map<Lane, number>();
    try {
      for (let left = await lanes(); left.length > 0;) {
        const full: Lane[] = [];
        for (const lane of left) {
          if (stopped) return;
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

  return {
    wake() {
      woken = true;
      pause.end();
    },
    async stop() {
      stopped = true;
      pause.end();
      await running;
    },
  };
}
