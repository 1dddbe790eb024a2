import { noteSurplus } from '../../../db/endpoints/endpoints';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import type { NotificationRef } from '../../../db/notifications/notification';
import { TEST_EVENT_TYPE } from '../../../domain/notification-states';
import {
  endNotification,
  forgetAttempt,
  recordAttempt,
  type AttemptRef,
} from '../../../db/notifications/attempt';
import { resendNotification } from '../../../db/notifications/resend';
import { DELIVERY_LADDER_MS, type DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useDatabase } from '../../support/database';
import {
  newKeyRingText,
  newPartner as addPartner,
  openedAttempt,
  setServiceClock,
  storeStatus,
  storeTest,
} from '../../../testbed/notifications';
import { DELIVERED, FAILED as FAILED_AT_ONCE } from '../../../testbed/values';

const FAILED = { ...FAILED_AT_ONCE, retryAfterMs: 1_000 };
const EXHAUSTED = { state: 'failed', reason: 'exhausted' } as const;
const keyRing = parseKeyRing(newKeyRingText());
const database = useDatabase({ poolSize: 20 });

afterEach(() => setServiceClock(database, null));

const newPartner = () => addPartner(database, keyRing);
async function stored(partnerId: string) {
  const { notificationId, refused } = await storeTest(database, { partnerId });
  expect(refused).toBeNull();
  return { notificationId, generation: 1 };
}

const opened = (ref: NotificationRef) => openedAttempt(database, ref);

const record = (ref: AttemptRef, outcome: DeliveryOutcome) =>
  recordAttempt(database.db, ref, { outcome, address: '192.0.2.1' });

const row = async (notificationId: string) =>
  (await database.sql`select * from notifications_now where notification_id = ${notificationId}`)[0];
const attemptsOf = (notificationId: string) =>
  database.sql`select attempt_number, outcome, failure, http_status from delivery_attempts
    where notification_id = ${notificationId} order by 1`;
const countsOf = (partnerId: string) =>
  database.sql`select month::text, delivered, failed, reserved from monthly_counts
    where partner_id = ${partnerId} order by month`;

describe('a slot of the month', () => {
  test('is taken by whoever is refused while one under way fails: what it is told would not be true', async () => {
    const { partnerId } = await newPartner();
    await stored(partnerId);
    await database.sql`update monthly_counts set delivered = 99 where partner_id = ${partnerId}`;
    const { sql } = database;
    const unsafe = sql.unsafe.bind(sql);
    let statements = 0;
    // A failure comes right behind the first statement, which has found the month full. The hint that follows does not count.
    const counted = jest.spyOn(sql, 'unsafe').mockImplementation((async (
      ...call: Parameters<typeof unsafe>
    ) => {
      const rows = await unsafe(...call);
      if (!call[0].includes('pg_notify')) statements += 1;
      if (statements === 1) await sql`update monthly_counts set reserved = 0 where partner_id = ${partnerId}`;
      return rows;
    }) as never);
    expect((await storeTest({ db: sql }, { partnerId })).refused).toBeNull();
    counted.mockRestore();
    expect(statements).toBe(3);
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 99, reserved: 1 }]);
  });
});

describe('an attempt', () => {
  test('a result that contradicts its row, or has none, changes nothing', async () => {
    const { partnerId } = await newPartner();
    const first = await opened(await stored(partnerId));
    await record(first, FAILED);
    const stands = async () => [
      await row(first.notificationId),
      await attemptsOf(first.notificationId),
      await countsOf(partnerId),
    ];
    const before = await stands();
    await expect(record(first, DELIVERED)).rejects.toThrow(/attempt 1 of ntf_\w+ is recorded as failed/);
    const second = { ...first, attemptNumber: 2 };
    await expect(record(second, DELIVERED)).rejects.toThrow(/attempt 2 of ntf_\w+ has no row/);
    await expect(record(second, FAILED)).rejects.toThrow('has no row');
    expect(await stands()).toEqual(before);
  });

  test('has a connection of its own for a day after its endpoint sent surplus bytes, in every worker', async () => {
    await setServiceClock(database, '2026-11-26T12:00:00Z');
    const { partnerId, endpointId } = await newPartner();
    const ref = await stored(partnerId);
    const alone = async () => (await opened(ref)).attempt.endpoint.alone;
    expect(await alone()).toBe(false);
    expect(await noteSurplus(database.db, endpointId)).toBe(true);
    // Once an hour.
    expect(await noteSurplus(database.db, endpointId)).toBe(false);
    expect(await alone()).toBe(true);
    await setServiceClock(database, '2026-11-27T11:59:59Z');
    expect(await alone()).toBe(true);
    await setServiceClock(database, '2026-11-27T12:00:01Z');
    expect(await alone()).toBe(false);
    await setServiceClock(database, null);
  });

  test('is the first of a workflow when it was sent, whatever could not be signed before', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    const attemptAt = async (
      at: string,
      task: (one: Awaited<ReturnType<typeof opened>>) => Promise<unknown>,
    ) => {
      await setServiceClock(database, at);
      await task(await opened(ref));
      const [found] = await database.sql`
        select (first_attempt_at at time zone 'UTC')::text as at from deliveries where notification_id = ${ref.notificationId}`;
      return found?.['at'];
    };
    const forget = (one: AttemptRef) => forgetAttempt(database.db, one);
    const fail = (one: AttemptRef) => record(one, FAILED);
    expect(await attemptAt('2027-03-01T10:00:00Z', forget)).toBeNull();
    expect(await attemptAt('2027-03-01T10:01:00Z', fail)).toBe('2027-03-01 10:01:00');
    expect(await attemptAt('2027-03-01T10:02:00Z', forget)).toBe('2027-03-01 10:01:00');
  });
});

test('the end says of which event it was, once, so that failed tests are told from lost events', async () => {
  const { partnerId } = await newPartner();
  const end = (ref: NotificationRef) => endNotification(database.db, ref, EXHAUSTED);
  const ref = await stored(partnerId);
  expect([await end(ref), await end(ref)]).toEqual([TEST_EVENT_TYPE, null]);
  const { notificationId } = await storeStatus(database, { partnerId });
  expect(await end({ notificationId, generation: 2 })).toBeNull();
  expect(await end({ notificationId, generation: 1 })).toBe('credit_application.accepted');
});

describe('sending again', () => {
  const resend = (notificationId: string) =>
    database.db.transaction((tx) => resendNotification(tx, notificationId));
  const attempt = async (notificationId: string, generation: number, outcome: DeliveryOutcome) =>
    void (await record(await openedAttempt(database, { notificationId, generation }, [0]), outcome));

  test('counts one that was delivered before as delivered, although it fails this time', async () => {
    const { partnerId } = await newPartner();
    const { notificationId } = await storeStatus(database, { partnerId });
    await attempt(notificationId, 1, DELIVERED);
    const { delivered_at: first } = (await row(notificationId)) ?? {};
    await resend(notificationId);
    await attempt(notificationId, 2, FAILED);
    expect(await row(notificationId)).toMatchObject({ state: 'failed', delivered_at: first });
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
  });

  test('is not ended by what is left of the generation before', async () => {
    const { partnerId } = await newPartner();
    const { notificationId } = await storeStatus(database, { partnerId });
    const late = await opened({ notificationId, generation: 1 });
    await endNotification(database.db, late, EXHAUSTED);
    await resend(notificationId);
    await record(late, FAILED);
    expect(await row(notificationId)).toMatchObject({ state: 'queued', generation: 2 });
  });

  test('takes a test a slot of the month, and is refused once that was delivered', async () => {
    const { partnerId } = await newPartner();
    const { notificationId } = await stored(partnerId);
    await attempt(notificationId, 1, FAILED);
    await resend(notificationId);
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 0, failed: 1, reserved: 1 }]);
    await attempt(notificationId, 2, DELIVERED);
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
    await expect(resend(notificationId)).rejects.toThrow('send a new one');
  });
});

describe('the wait after a failure (record.sql)', () => {
  const SECOND = 1_000;
  const MINUTE = 60 * SECOND;
  const HOUR = 60 * MINUTE;
  let partnerId = '';
  beforeEach(async () => {
    await setServiceClock(database, '2027-03-01T10:00:00Z');
    ({ partnerId } = await newPartner());
  });

  const begin = async (ladder = DELIVERY_LADDER_MS) => {
    const { notificationId } = await storeStatus(database, { partnerId });
    return openedAttempt(database, { notificationId, generation: 1 }, ladder);
  };
  /** Lets a delivery fail after so many failures. @returns what its workflow does next */
  async function after(failures: number, outcome: DeliveryOutcome) {
    const first = await begin();
    await database.sql`update deliveries set step = ${failures} where notification_id = ${first.notificationId}`;
    return (await record(first, outcome)).next;
  }

  test.each([
    ['later than the ladder counts', 0, 120 * SECOND, 120 * SECOND, 'retry_after'],
    ['earlier than the ladder changes nothing', 2, 2 * MINUTE, 5 * MINUTE, 'ladder'],
    ['counts for at most 10 hours', 0, 20 * 24 * HOUR, 10 * HOUR, 'retry_after'],
    ['never shortens a longer step', 9, 20 * 24 * HOUR, 24 * HOUR, 'ladder'],
  ])('a Retry-After %s', async (_what, failures, retryAfterMs, leastMs, because) => {
    const next = await after(failures, { ...FAILED_AT_ONCE, retryAfterMs });
    expect(next).toMatchObject({ kind: 'wait', because });
    const waitMs = next.kind === 'wait' ? next.waitMs : null;
    if (because === 'retry_after') expect(waitMs).toBe(leastMs);
    else expect(waitMs).toBeGreaterThanOrEqual(leastMs);
  });

  test('there is no twelfth attempt, whatever Retry-After says, and none after a 410', async () => {
    const over = { kind: 'over', status: 'failed' };
    expect(await after(10, { ...FAILED_AT_ONCE, retryAfterMs: 5_000 })).toEqual({
      ...over,
      reason: 'exhausted',
    });
    expect(await after(0, { ...FAILED_AT_ONCE, failure: 'gone', httpStatus: 410 })).toEqual({
      ...over,
      reason: 'gone',
    });
  });

  test('a failure of ours spends no step, and waits no longer than ten hours', async () => {
    const ours = {
      kind: 'ours',
      failure: 'connect',
      httpStatus: null,
      durationMs: 5,
      sinceMs: null,
    } as const;
    const waits = { kind: 'wait', because: 'outage' };
    expect(await after(10, { ...ours, waitMs: 30_000 })).toMatchObject({ ...waits, waitMs: 30_000 });
    expect(await after(0, { ...ours, waitMs: 1e12 })).toMatchObject({ ...waits, waitMs: 10 * HOUR });
  });

  test('a delivery that an older build opened, without a ladder, is not ended by a failure', async () => {
    const first = await begin();
    const { notificationId } = first;
    await database.sql`update deliveries set ladder_ms = null where notification_id = ${notificationId}`;
    expect((await record(first, FAILED_AT_ONCE)).next).toMatchObject({ kind: 'wait', because: 'ladder' });
    await database.sql`update deliveries set next_attempt_at = null where notification_id = ${notificationId}`;
    await openedAttempt(database, { notificationId, generation: 1 }, [0, 7_000]);
    const [found] = await database.sql`
      select ladder_ms::text as ladder from deliveries where notification_id = ${notificationId}`;
    expect(found).toEqual({ ladder: '{0,7000}' });
  });

  test('the same result once more gets the same answer', async () => {
    const attempt = await begin();
    const { next } = await record(attempt, FAILED_AT_ONCE);
    expect(next).toMatchObject({ kind: 'wait' });
    expect((await record(attempt, FAILED_AT_ONCE)).next).toEqual(next);
  });
});
