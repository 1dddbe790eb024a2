import { recordAttempt } from '../../../db/notifications/attempt';
import { DELIVERY_LADDER_MS } from '../../../domain/delivery-outcome';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useDatabase } from '../../support/database';
import { newPartner, openedAttempt, setServiceClock, storeStatus } from '../../../testbed/notifications';
import { FAILED } from '../../../testbed/values';

/** How long a delivery waits after a failure (record.sql). */

const database = useDatabase({ poolSize: 2 });
let partnerId = '';
beforeAll(() => setServiceClock(database, '2027-03-01T10:00:00Z'));
beforeEach(async () => {
  ({ partnerId } = await newPartner(database));
});

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Lets a delivery fail after so many failures. @returns what its workflow does next */
async function after(failures: number, outcome: DeliveryOutcome, ladder = DELIVERY_LADDER_MS) {
  const { notificationId } = await storeStatus(database, { partnerId });
  const opened = await openedAttempt(database, { notificationId, generation: 1 }, ladder);
  await database.sql`update deliveries set step = ${failures} where notification_id = ${notificationId}`;
  return (await recordAttempt(database.sql, opened, { outcome, address: null })).next;
}

test.each([
  ['later than the ladder counts', 0, 120 * SECOND, 120 * SECOND, 'retry_after'],
  ['earlier than the ladder changes nothing', 2, 2 * MINUTE, 5 * MINUTE, 'ladder'],
  ['counts for at most 10 hours', 0, 20 * 24 * HOUR, 10 * HOUR, 'retry_after'],
  ['never shortens a longer step', 9, 20 * 24 * HOUR, 24 * HOUR, 'ladder'],
])('a Retry-After %s', async (_what, failures, retryAfterMs, leastMs, because) => {
  const next = await after(failures, { ...FAILED, retryAfterMs });
  expect(next).toMatchObject({ kind: 'wait', because });
  const waitMs = next.kind === 'wait' ? next.waitMs : null;
  if (because === 'retry_after') expect(waitMs).toBe(leastMs);
  else expect(waitMs).toBeGreaterThanOrEqual(leastMs);
});

test('there is no twelfth attempt, whatever Retry-After says, and none after a 410', async () => {
  const over = { kind: 'over', status: 'failed' };
  expect(await after(10, { ...FAILED, retryAfterMs: 5_000 })).toEqual({ ...over, reason: 'exhausted' });
  expect(await after(0, { ...FAILED, failure: 'gone', httpStatus: 410 })).toEqual({
    ...over,
    reason: 'gone',
  });
});

test('a failure of ours spends no step, and waits no longer than ten hours', async () => {
  const ours = { kind: 'ours', failure: 'connect', httpStatus: null, durationMs: 5, sinceMs: null } as const;
  const waits = { kind: 'wait', because: 'outage' };
  expect(await after(10, { ...ours, waitMs: 30_000 })).toMatchObject({ ...waits, waitMs: 30_000 });
  expect(await after(0, { ...ours, waitMs: 1e12 })).toMatchObject({ ...waits, waitMs: 10 * HOUR });
});

test('a delivery that an older build opened, without a ladder, is not ended by a failure', async () => {
  const { notificationId } = await storeStatus(database, { partnerId });
  const opened = await openedAttempt(database, { notificationId, generation: 1 });
  await database.sql`update deliveries set ladder_ms = null where notification_id = ${notificationId}`;
  const recorded = await recordAttempt(database.sql, opened, { outcome: FAILED, address: null });
  expect(recorded.next).toMatchObject({ kind: 'wait', because: 'ladder' });
  await database.sql`update deliveries set next_attempt_at = null where notification_id = ${notificationId}`;
  await openedAttempt(database, { notificationId, generation: 1 }, [0, 7_000]);
  const [row] = await database.sql`
    select ladder_ms::text as ladder from deliveries where notification_id = ${notificationId}`;
  expect(row).toEqual({ ladder: '{0,7000}' });
});

test('the same result once more gets the same answer', async () => {
  const { notificationId } = await storeStatus(database, { partnerId });
  const opened = await openedAttempt(database, { notificationId, generation: 1 }, DELIVERY_LADDER_MS);
  const record = async () =>
    (await recordAttempt(database.sql, opened, { outcome: FAILED, address: null })).next;
  const first = await record();
  expect(first).toMatchObject({ kind: 'wait' });
  expect(await record()).toEqual(first);
});
