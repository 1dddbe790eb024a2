import type { LastPace } from '../db/endpoints/attempts';
import { queueName, tenantOf } from '../db/notifications/notification';
import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';
import type { Tenant } from '../domain/tenant';

/** A reservation ends after this time: its workflow began on another worker, or not at all. */
const RESERVED_MS = 5_000;
/** While one of its attempts takes longer than this, an endpoint gets no further slot. */
const SLOW_MS = 1_000;
/** An attempt is fast if it succeeds within this time. */
const FAST_MS = 500;
/** Endpoints of which nothing is known have at most this share of the slots, so that those that hang leave the rest. */
const SHARE_OF_UNKNOWN = 1 / 4;
/**
 * An endpoint that stays fast may have more than 16 slots, as long as all endpoints together hold no more than this share.
 * The rest is left to others.
 */
const SHARE_OF_FAST = 1 / 2;
/** Each quick answer earns an endpoint a slot above 16 for this time, so that one that begins to hang has not all of them. */
const EARNED_FOR_MS = 2_000;
/** A process that makes attempts take so much longer is short of CPU: with more slots for one endpoint, others would wait. */
const BUSY_MS = 50;
/**
 * The starts for a slow endpoint's slots are spread over this share of the time that its attempts take. No more, as alerts take free
 * slots of an endpoint for which something is due for a fault of ours.
 */
const SHARE_OF_SLOW = 1 / 4;
/** Claims wait for this share of the slots to be free, so that each takes several. */
const SHARE_OF_CLAIM = 1 / 8;

export type FastPathAnswer = 'fast' | 'endpoint_not_fast' | 'no_slot';

interface FastPathDeps {
  readonly speed: Pick<EndpointSpeed, 'of'>;
  /** Most first attempts within workflow tasks: half of the workflow-task slots, which they occupy. */
  readonly slots: number;
  /** Most of them for one endpoint; not less than 16. */
  readonly mostPerEndpoint: number;
  readonly monotonicMs: () => number;
  readonly ownDelayMs: OwnDelay;
}

/** What an attempt takes longer at present because of this process (own-delay.ts), in milliseconds: it counts for no endpoint. */
type OwnDelay = () => number;

export type FastPath = ReturnType<typeof createFastPath>;

/** With it, an attempt that is due all the same is declined. */
const NO_ENDPOINT: KnownSpeed = { endpointId: '', pace: 'fast' };

type Reservation = Tenant & { readonly notificationId: string; readonly waits?: boolean };

interface Slot extends KnownSpeed {
  readonly queue: string;
  readonly sinceMs: number;
  /** Since when its request is under way; null before and after. */
  sendingMs: number | null;
}

interface TakenSlot {
  readonly endpointId: string;
  readonly queue: string;
  /** Attempts at once that its endpoint may have. */
  readonly most: number;
  /** Makes the request. What this process itself takes, when it has much to do, counts for no endpoint. */
  readonly sending: <T>(send: () => Promise<T>) => Promise<T>;
  leave(): void;
}

export function createFastPath({ speed, slots, mostPerEndpoint, monotonicMs, ownDelayMs }: FastPathDeps) {
  const reserved = new Map<string, Slot>();
  const taken = new Set<Slot>();
  const earned = new Map<string, { readonly slots: number; readonly atMs: number }>();

  function earnedBy(queue: string, nowMs: number): number {
    const { slots: most, atMs } = earned.get(queue) ?? { slots: 0, atMs: nowMs };
    return nowMs - atMs < EARNED_FOR_MS ? most : 0;
  }
  function answered(slot: Slot): void {
    const nowMs = monotonicMs();
    if (sendsFor(slot, nowMs) >= FAST_MS) earned.delete(slot.queue);
    else {
      const most = Math.min(earnedBy(slot.queue, nowMs) + 1, mostPerEndpoint - SENDS_PER_ENDPOINT);
      earned.set(slot.queue, { slots: most, atMs: nowMs });
    }
    slot.sendingMs = null;
  }

  function dropExpired(nowMs: number): void {
    for (const [notificationId, { sinceMs }] of reserved) {
      if (nowMs - sinceMs < RESERVED_MS) return;
      reserved.delete(notificationId);
    }
  }
  const sendsFor = ({ sendingMs }: Slot, nowMs: number) =>
    sendingMs === null ? 0 : nowMs - sendingMs - ownDelayMs();
  const stalls = (endpointId: string, nowMs: number) =>
    [...taken].some((slot) => slot.endpointId === endpointId && sendsFor(slot, nowMs) > SLOW_MS);
  const used = (which: (slot: Slot) => boolean) => [...reserved.values(), ...taken].filter(which).length;
  const ofUnknown = () => used(({ pace }) => pace === 'unknown');

  return {
    /**
     * How many more deliveries have a slot: no more are to be claimed. They wait for milliseconds in the database, where the regular
     * path would cost two or three times the CPU. When requests that hang hold half of the slots, what is due need not wait for
     * them: any number.
     */
    room: (): number => {
      const nowMs = monotonicMs();
      dropExpired(nowMs);
      const hanging = [...taken].filter((slot) => sendsFor(slot, nowMs) >= FAST_MS).length;
      if (hanging >= slots / 2) return Number.POSITIVE_INFINITY;
      const free = slots - reserved.size - taken.size;
      return free < slots * SHARE_OF_CLAIM ? 0 : free;
    },
    /** How many first attempts to the endpoint of a queue may be under way: 16, and more to one that stays fast. */
    slotsOf: (queue: string): number => {
      const nowMs = monotonicMs();
      const known = speed.of(tenantOf(queue));
      if (known?.pace !== 'fast' || ownDelayMs() > BUSY_MS || stalls(known.endpointId, nowMs))
        return SENDS_PER_ENDPOINT;
      const leftByOthers = slots * SHARE_OF_FAST - used((slot) => slot.queue !== queue);
      const most = SENDS_PER_ENDPOINT + earnedBy(queue, nowMs);
      return Math.floor(Math.max(SENDS_PER_ENDPOINT, Math.min(leftByOthers, most)));
    },
    /** @param of.waits its workflow only reads when the next attempt is planned, whatever its endpoint is */
    reserve({ notificationId, waits = false, ...of }: Reservation): FastPathAnswer {
      const nowMs = monotonicMs();
      const known = waits ? NO_ENDPOINT : speed.of(of);
      if (known === null || known.pace === 'slow' || stalls(known.endpointId, nowMs))
        return 'endpoint_not_fast';
      dropExpired(nowMs);
      if (reserved.size + taken.size >= slots) return 'no_slot';
      if (known.pace === 'unknown' && ofUnknown() >= slots * SHARE_OF_UNKNOWN) return 'no_slot';
      reserved.delete(notificationId);
      reserved.set(notificationId, { ...known, queue: queueName(of), sinceMs: nowMs, sendingMs: null });
      return 'fast';
    },
    cancel: (notificationId: string): void => void reserved.delete(notificationId),
    /**
     * Takes a reserved slot.
     * @returns null without a reservation, as after a crash or on another worker
     */
    enter: (notificationId: string): TakenSlot | null => {
      dropExpired(monotonicMs());
      const slot = reserved.get(notificationId);
      if (slot === undefined) return null;
      reserved.delete(notificationId);
      taken.add(slot);
      const { endpointId, queue } = slot;
      return {
        endpointId,
        queue,
        most: mostPerEndpoint,
        sending: (send) => {
          slot.sendingMs = monotonicMs();
          return send().finally(() => answered(slot));
        },
        leave: () => void taken.delete(slot),
      };
    },
  };
}

/** How the newest attempt went: `unknown`: there is none. */
interface KnownSpeed {
  readonly endpointId: string;
  readonly pace: 'fast' | 'slow' | 'unknown';
}

export type EndpointSpeed = ReturnType<typeof createEndpointSpeed>;

/**
 * Tracks which endpoints are fast: those whose newest attempt was, in this process or, at first, in the database. One quick
 * answer is enough, and one slow one sets it back: a slow attempt on the fast path costs its slot for a while, and a quick
 * one on the regular path two or three times as much CPU.
 * @param recall the newest attempts to the active endpoints of some queues
 */
export function createEndpointSpeed(
  recall: (queues: readonly string[]) => Promise<readonly LastPace[]>,
  ownDelayMs: OwnDelay,
) {
  const endpoints = new Map<string, KnownSpeed & { readonly apartMs: number }>();
  const note = (queue: string, endpointId: string, attempt: AttemptPace, ownMs = 0) =>
    void endpoints.set(queue, { endpointId, pace: paceOf(attempt, ownMs), apartMs: apartMs(attempt, ownMs) });

  return {
    /** Reads what the database knows of those queues of which this process knows nothing. */
    async learn(queues: readonly string[]): Promise<void> {
      const unknown = queues.filter((queue) => !endpoints.has(queue));
      if (unknown.length === 0) return;
      for (const { queue, endpointId, ...attempt } of await recall(unknown)) {
        // An attempt that has ended meanwhile is newer.
        if (endpoints.has(queue)) continue;
        note(queue, endpointId, attempt);
      }
    },
    /** Null without an active endpoint, as far as is known. */
    of: (tenant: Tenant): KnownSpeed | null => endpoints.get(queueName(tenant)) ?? null,
    /** Notes an attempt of this process. */
    observe({ endpointId, ...of }: Tenant & { readonly endpointId: string }, attempt: AttemptPace): void {
      note(queueName(of), endpointId, attempt, ownDelayMs());
    },
    /**
     * Milliseconds between two starts for the endpoint of a queue; 0: they need not be apart. Sixteen attempts that hang would
     * otherwise end, and sixteen others begin, in one moment, for which all others wait.
     */
    apartMs: (queue: string): number => endpoints.get(queue)?.apartMs ?? 0,
  };
}

export type AttemptPace = Pick<LastPace, 'outcome' | 'durationMs'>;

function paceOf({ outcome, durationMs }: AttemptPace, ownMs: number): KnownSpeed['pace'] {
  if (outcome === null) return 'unknown';
  return outcome === 'delivered' && durationMs !== null && durationMs - ownMs < FAST_MS ? 'fast' : 'slow';
}

function apartMs({ durationMs }: AttemptPace, ownMs: number): number {
  const tookMs = (durationMs ?? 0) - ownMs;
  return tookMs < FAST_MS ? 0 : (tookMs * SHARE_OF_SLOW) / SENDS_PER_ENDPOINT;
}
