import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';

/**
 * Most that one endpoint may hold for each slot that is free. Of 400 slots 20 endpoints that hang hold 16 each; a hundred
 * hold 4 each, and a dozen stay free.
 */
const SHARE_OF_FREE = 1 / 4;

/** Shortest wait of an attempt that is told `busy`, in milliseconds, and the jitter that is added to it. */
const SHORTEST_WAIT_MS = 1_000;
/** Longest: an endpoint that has come back must not find everybody asleep. */
const LONGEST_WAIT_MS = 600_000;
/** How long an attempt takes, as long as none has ended. */
const FIRST_GUESS_MS = 1_000;
/** Weight of the latest attempt in the mean. */
const LATEST = 0.2;

/** No attempt was made: enough are under way to that endpoint. Ask again after the wait. */
export interface Busy {
  readonly kind: 'busy';
  /** Whole milliseconds. */
  readonly waitMs: number;
}

/** The attempts under way in this process, by endpoint, over all ways of sending. */
export interface SendSlots {
  /**
   * Runs the task when there is room on the queue.
   * @param queue names the endpoint.
   */
  within<T>(queue: string, task: () => Promise<T>): Promise<T | Busy>;
  /** Attempts under way, and those of the endpoint that has most. */
  underWay(): { readonly all: number; readonly most: number };
}

interface SendSlotsOptions {
  /** Most attempts under way in this process, 1 or more. */
  readonly slots: number;
  readonly monotonicMs: () => number;
  /** A number from 0 up to, not including, 1. */
  readonly random: () => number;
  readonly onBusy: () => void;
}

interface Queue {
  underWay: number;
  /** How long an attempt takes: moving mean. */
  meanMs: number;
  /** When the next attempt that is told `busy` is to ask again. */
  nextAskMs: number;
}

/**
 * Keeps endpoints that hang from holding every slot: each has at most 16, and at most a quarter of what is free.
 * An attempt that finds no slot gets a time of its own to ask again, spaced as the endpoint's attempts end: a thousand
 * retries that wait for one endpoint then ask about once each, and not every second.
 */
export function createSendSlots({ slots, monotonicMs, random, onBusy }: SendSlotsOptions): SendSlots {
  const queues = new Map<string, Queue>();
  let all = 0;

  const roomFor = (underWay: number) =>
    underWay < SENDS_PER_ENDPOINT &&
    (underWay === 0 ? all < slots : underWay < (slots - all) * SHARE_OF_FREE);

  function busy(queue: Queue): Busy {
    onBusy();
    const now = monotonicMs();
    queue.nextAskMs = Math.min(
      Math.max(queue.nextAskMs, now + SHORTEST_WAIT_MS) + queue.meanMs / Math.max(queue.underWay, 1),
      now + LONGEST_WAIT_MS,
    );
    return { kind: 'busy', waitMs: Math.ceil(queue.nextAskMs - now + random() * SHORTEST_WAIT_MS) };
  }

  return {
    async within(name, task) {
      const queue = queues.get(name) ?? { underWay: 0, meanMs: FIRST_GUESS_MS, nextAskMs: 0 };
      if (!roomFor(queue.underWay)) return busy(queue);
      queues.set(name, queue);
      queue.underWay += 1;
      all += 1;
      const begunMs = monotonicMs();
      try {
        return await task();
      } finally {
        queue.meanMs += LATEST * (monotonicMs() - begunMs - queue.meanMs);
        queue.underWay -= 1;
        all -= 1;
        if (queue.underWay === 0) queues.delete(name);
      }
    },
    underWay: () => ({ all, most: Math.max(0, ...[...queues.values()].map((queue) => queue.underWay)) }),
  };
}
