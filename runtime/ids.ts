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

/** A prefix and a ULID of the moment, with 80 random bits. */
const idOf = (prefix: string) => (at: Date) => `${prefix}_${ulid(at.getTime(), randomFraction)}`;

export const newQuoteId = idOf('qte');
export const newNotificationId = idOf('ntf');
export const newEventId = idOf('evt');
export const newRequestId = () => `rq_${randomUUID()}`;
