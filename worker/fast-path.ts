import type { Tenant } from '../domain/tenant';
import type { EndpointSpeed } from './endpoint-speed';

/** A slot that nobody came for in this time is free again: its workflow began elsewhere, or not at all. */
const RESERVED_MS = 5_000;
/** An attempt that takes longer, the opening of its row included, takes its endpoint off the path before it has ended. */
const SLOW_MS = 1_000;

/** Why a delivery starts on the fast path, or does not: its endpoint is not known to be fast, or no slot is free. */
export type FastPathAnswer = 'fast' | 'endpoint_not_fast' | 'no_slot';

interface FastPathDeps {
  readonly speed: EndpointSpeed;
  /**
   * Most first attempts as local activities at once. Each holds a workflow-task slot while it runs, so: half of those,
   * and the other half is always left for everything else.
   */
  readonly slots: number;
  readonly monotonicMs: () => number;
}

/** The slots of a worker process for first attempts that run within their workflow task (local activities). */
export interface FastPath {
  /** Asks for a slot before a delivery is started. */
  readonly reserve: (notification: Tenant & { readonly notificationId: string }) => FastPathAnswer;
  /** Gives a slot back that nobody will come for. */
  readonly cancel: (notificationId: string) => void;
  /**
   * Takes the reserved slot.
   * @returns the endpoint that it was given for; null without a reservation, as after a crash or on another worker.
   */
  readonly enter: (
    notificationId: string,
  ) => { readonly endpointId: string; readonly leave: () => void } | null;
}

interface Slot {
  readonly endpointId: string;
  /** When it was reserved, then when it was taken. */
  readonly sinceMs: number;
}

export function createFastPath({ speed, slots, monotonicMs }: FastPathDeps): FastPath {
  const reserved = new Map<string, Slot>();
  const taken = new Set<Slot>();

  /** In the order of their reservation. */
  function dropExpired(now: number): void {
    for (const [notificationId, { sinceMs }] of reserved) {
      if (now - sinceMs < RESERVED_MS) return;
      reserved.delete(notificationId);
    }
  }
  const stalls = (endpointId: string, now: number) =>
    [...taken].some((slot) => slot.endpointId === endpointId && now - slot.sinceMs > SLOW_MS);

  return {
    reserve: ({ notificationId, ...of }) => {
      const now = monotonicMs();
      const endpointId = speed.fast(of);
      if (endpointId === null || stalls(endpointId, now)) return 'endpoint_not_fast';
      dropExpired(now);
      if (reserved.size + taken.size >= slots) return 'no_slot';
      reserved.delete(notificationId);
      reserved.set(notificationId, { endpointId, sinceMs: now });
      return 'fast';
    },
    cancel: (notificationId) => void reserved.delete(notificationId),
    enter: (notificationId) => {
      const now = monotonicMs();
      dropExpired(now);
      const reservation = reserved.get(notificationId);
      if (reservation === undefined) return null;
      reserved.delete(notificationId);
      const slot = { endpointId: reservation.endpointId, sinceMs: now };
      taken.add(slot);
      return { endpointId: slot.endpointId, leave: () => void taken.delete(slot) };
    },
  };
}
