import { randomFillSync, randomUUID } from 'node:crypto';
import { ulid } from 'ulid';

/** Random bytes drawn ahead: the generator is asked for 16 numbers per id, and each call of it costs a microsecond. */
const pool = Buffer.alloc(4_096);
let used = pool.length;

function randomFraction(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const byte = pool[used] ?? 0;
  used += 1;
  // The library makes a base-32 digit of it; 256 is a multiple of 32, so that every digit is equally likely.
  return byte / 256;
}

/** A quote id: `qte_` and a ULID of the moment, with 80 random bits. */
export function newQuoteId(at: Date): string {
  return `qte_${ulid(at.getTime(), randomFraction)}`;
}

/** A notification id: `ntf_` and a ULID of the moment. */
export function newNotificationId(at: Date): string {
  return `ntf_${ulid(at.getTime(), randomFraction)}`;
}

/** An event id: `evt_` and a ULID of the moment. */
export function newEventId(at: Date): string {
  return `evt_${ulid(at.getTime(), randomFraction)}`;
}

/** A request id: `rq_` and a UUID. */
export function newRequestId(): string {
  return `rq_${randomUUID()}`;
}
