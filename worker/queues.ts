import type { Seat } from '../db/processes';

/**
 * Which queues belong to this worker: those for which its seat has the highest hash among the seats of all workers
 * (rendezvous hashing), so that a worker that leaves or comes back moves its own queues only. Before the first answer from
 * Postgres every queue does, which costs speed only: order and slots are the claim's.
 */
export function createQueueOwners(processId: string) {
  let seats: readonly number[] = [];
  let own: number | null = null;
  const known = new Map<string, boolean>();

  return {
    /** @returns whether an older worker has the same seat */
    update: (all: readonly Seat[]): boolean => {
      const mine = all.find((one) => one.processId === processId)?.seat ?? null;
      const taken = [...new Set(all.map(({ seat }) => seat))].toSorted((a, b) => a - b);
      if (mine !== own || taken.join() !== seats.join()) known.clear();
      [seats, own] = [taken, mine];
      return all.some((one) => one.seat === mine && one.processId < processId);
    },
    isMine: (queue: string): boolean => {
      const found = known.get(queue);
      if (found !== undefined) return found;
      const mine = own === null ? true : highest(queue, seats) === own;
      known.set(queue, mine);
      return mine;
    },
  };
}

export type QueueOwners = ReturnType<typeof createQueueOwners>;

function highest(queue: string, seats: readonly number[]): number | undefined {
  let best: { readonly seat: number; readonly weight: number } | undefined;
  for (const seat of seats) {
    const weight = hash(`${queue} ${seat}`);
    if (best === undefined || weight > best.weight) best = { seat, weight };
  }
  return best?.seat;
}

/** FNV-1a with the last steps of MurmurHash3, as texts that differ in one digit must differ in the high bits too. */
function hash(text: string): number {
  let value = 0x81_1c_9d_c5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01_00_01_93);
  value = Math.imul(value ^ (value >>> 16), 0x85_eb_ca_6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2_b2_ae_35);
  return (value ^ (value >>> 16)) >>> 0;
}
