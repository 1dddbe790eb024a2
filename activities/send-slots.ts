import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';

/**
 * Most slots that one endpoint may have for each slot that is free. Of 400 slots, 20 endpoints that hang have 16 each; a hundred have 4
 * each, and a dozen stay free.
 */
const SHARE_OF_FREE = 1 / 4;

/** Shortest wait of an attempt that gets `busy`, in milliseconds, and the jitter that is added to it. */
const SHORTEST_WAIT_MS = 1_000;
/** Longest wait: an endpoint that works again gets its attempts within this time. */
const LONGEST_WAIT_MS = 600_000;
/** Assumed duration of an attempt until the first one has ended. */
const FIRST_GUESS_MS = 1_000;
/** Weight of the latest attempt in the mean. */
const LATEST = 0.2;

/** No attempt was made: enough are under way to that endpoint. The workflow asks again after the wait. */
export interface Busy {
  readonly kind: 'busy';
  /** Whole milliseconds. */
  readonly waitMs: number;
}

export type SendSlots = ReturnType<typeof createSendSlots>;

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
  /** When the next attempt that gets `busy` is to ask again. */
  nextAskMs: number;
}

/**
 * Limits each endpoint to 16 slots, and to a quarter of the free ones, so that endpoints that hang leave slots to the others.
 * An attempt without a slot gets its own time to ask again, spaced as the endpoint's attempts end: a thousand retries to one endpoint
 * then ask about once each, and not every second.
 */
export function createSendSlots({ slots, monotonicMs, random, onBusy }: SendSlotsOptions) {
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
    /**
     * Runs the task when its queue may have another slot.
     * @param name names the endpoint.
     */
    async run<T>(name: string, task: () => Promise<T>): Promise<T | Busy> {
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
    /** Attempts under way, and those of the endpoint that has most. */
    underWay: (): { readonly all: number; readonly most: number } => ({
      all,
      most: Math.max(0, ...[...queues.values()].map((queue) => queue.underWay)),
    }),
  };
}
