import { randomFillSync, randomUUID } from 'node:crypto';
import { ulid } from 'ulid';

/** Random bytes are drawn in advance, as an id needs 16 and each call costs a microsecond. */
const pool = Buffer.alloc(4_096);
let used = pool.length;

function randomFraction(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const byte = pool[used] ?? 0;
  used += 1;
  // The library makes a base-32 digit of it. As 256 is a multiple of 32, all are equally likely.
  return byte / 256;
}

const idOf = (prefix: string) => (at: Date) => `${prefix}_${ulid(at.getTime(), randomFraction)}`;

export const newQuoteId = idOf('qte');
export const newNotificationId = idOf('ntf');
export const newEventId = idOf('evt');
export const newRequestId = () => `rq_${randomUUID()}`;
