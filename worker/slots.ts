import type { Busy } from '../activities';
import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';

/**
 * An endpoint may have a quarter as many slots as are free. Of 400, 20 endpoints that hang get 16 each;
 * a hundred get 4 each, and a dozen stay free.
 */
const SHARE_OF_FREE = 1 / 4;

/** Shortest wait after `busy`, in milliseconds, and the jitter that is added to it. */
const SHORTEST_WAIT_MS = 1_000;
/** Longest wait, within which an endpoint that works again gets its attempts. */
const LONGEST_WAIT_MS = 600_000;
/** The shortest wait doubles with every round of a delivery, up to this: fifty rounds take 45 minutes at least. */
const LONGEST_BACKOFF_MS = 60_000;
/** How often queues that nothing is known of any more are forgotten, in milliseconds. */
const FORGET_EVERY_MS = 1_000;
/** Assumed duration of an attempt until the first one has ended. */
const FIRST_GUESS_MS = 1_000;
const LATEST = 0.2;

export type SendSlots = ReturnType<typeof createSendSlots>;

interface SendSlotsOptions {
  readonly slots: number;
  readonly monotonicMs: () => number;
  /** A number from 0 up to, not including, 1. */
  readonly random: () => number;
  readonly onBusy: () => void;
}

interface Queue {
  underWay: number;
  /** Moving mean of the duration of an attempt. */
  meanMs: number;
  /** When the last of those that wait may ask. The queue is kept until then. */
  nextAskMs: number;
}

/**
 * Limits each endpoint to 16 slots (a fast one to more) and to a quarter of the free ones, so that endpoints that hang leave
 * slots to others. An attempt without a slot is given a time to ask again, spaced at the pace at which
 * slots become free to its endpoint: a thousand retries to one endpoint then ask about once each. While
 * the slots of the process are short, the endpoints that wait share the pace of all attempts, so that
 * the backlog of one does not put off the others.
 */
export function createSendSlots({ slots, monotonicMs, random, onBusy }: SendSlotsOptions) {
  const queues = new Map<string, Queue>();
  const all = { underWay: 0, meanMs: FIRST_GUESS_MS };
  /** Queues in which somebody waits, and when they were counted last. */
  const waiting = { queues: 0, countedMs: Number.NEGATIVE_INFINITY };

  const roomFor = (underWay: number, most: number) =>
    underWay < most &&
    (underWay === 0 ? all.underWay < slots : underWay < (slots - all.underWay) * SHARE_OF_FREE);

  function forgetIdle(nowMs: number): void {
    if (nowMs - waiting.countedMs < FORGET_EVERY_MS) return;
    waiting.countedMs = nowMs;
    waiting.queues = 0;
    for (const [name, { underWay, nextAskMs }] of queues) {
      if (nextAskMs > nowMs) waiting.queues += 1;
      else if (underWay === 0) queues.delete(name);
    }
  }

  /** Mean time until a slot becomes free to this queue, in milliseconds. */
  function paceOf({ underWay, meanMs }: Queue): number {
    const own = underWay === 0 ? 0 : meanMs / underWay;
    if (underWay >= SENDS_PER_ENDPOINT) return own;
    return Math.max(own, (all.meanMs / Math.max(all.underWay, 1)) * waiting.queues);
  }

  function busy(queue: Queue, round: number): Busy {
    onBusy();
    const nowMs = monotonicMs();
    if (queue.nextAskMs <= nowMs) waiting.queues += 1;
    const spacedMs = Math.max(queue.nextAskMs - nowMs, SHORTEST_WAIT_MS) + paceOf(queue);
    queue.nextAskMs = nowMs + Math.min(spacedMs, LONGEST_WAIT_MS);
    const backoffMs = Math.min(SHORTEST_WAIT_MS * 2 ** (round - 1), LONGEST_BACKOFF_MS);
    // Those beyond the longest wait are spread over its second half: they would all ask at its end.
    const waitMs = spacedMs > LONGEST_WAIT_MS ? (LONGEST_WAIT_MS * (1 + random())) / 2 : spacedMs;
    return { kind: 'busy', waitMs: Math.ceil(Math.max(waitMs, backoffMs) + random() * SHORTEST_WAIT_MS) };
  }

  return {
    /**
     * Runs the task if its queue has a free slot.
     * @param name names the endpoint
     * @param of.round how often the delivery has asked, this time included; 1 or more
     * @param of.most slots of the endpoint: 16, more on the fast path
     */
    async run<T>(
      name: string,
      task: () => Promise<T>,
      { round = 1, most = SENDS_PER_ENDPOINT }: { readonly round?: number; readonly most?: number } = {},
    ): Promise<T | Busy> {
      const begunMs = monotonicMs();
      forgetIdle(begunMs);
      const queue = queues.get(name) ?? { underWay: 0, meanMs: FIRST_GUESS_MS, nextAskMs: 0 };
      queues.set(name, queue);
      if (!roomFor(queue.underWay, most)) return busy(queue, round);
      queue.underWay += 1;
      all.underWay += 1;
      try {
        return await task();
      } finally {
        const endedMs = monotonicMs();
        for (const one of [queue, all]) {
          one.meanMs += LATEST * (endedMs - begunMs - one.meanMs);
          one.underWay -= 1;
        }
        if (queue.underWay === 0 && queue.nextAskMs <= endedMs) queues.delete(name);
      }
    },
    underWay: (): { readonly all: number; readonly most: number } => ({
      all: all.underWay,
      most: Math.max(0, ...[...queues.values()].map((queue) => queue.underWay)),
    }),
  };
}
