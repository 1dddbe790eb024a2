import { TestLimitReached } from '../../../db/notifications/quota';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { restartNotification } from '../../../db/notifications/claim';
import type { NotificationRef } from '../../../db/notifications/notification';
import { TEST_EVENT_TYPE } from '../../../domain/notification-states';
import {
  endNotification,
  forgetAttempt,
  openAttempt,
  recordAttempt,
  type AttemptRef,
} from '../../../db/notifications/attempt';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { openDatabaseAt, type OpenTestDatabase, useDatabase } from '../../support/database';
import {
  addEndpoint,
  newKeyRingText,
  newPartner as addPartner,
  openedAttempt,
  putInState,
  setServiceClock,
  storeStatus,
  storeTest,
} from '../../support/notifications';
import { DELIVERED, FAILED as FAILED_AT_ONCE } from '../../support/values';

const FAILED = { ...FAILED_AT_ONCE, retryAfterMs: 1_000 };
const keyRing = parseKeyRing(newKeyRingText());
const database = useDatabase({ poolSize: 20 });

afterEach(() => setServiceClock(database, null));

const newPartner = () => addPartner(database, keyRing);

async function stored(partnerId: string) {
  const { notificationId, refused } = await storeTest(database, { partnerId });
  expect(refused).toBeNull();
  return { notificationId, generation: 1 };
}

const opened = (ref: NotificationRef, on: Pick<OpenTestDatabase, 'db'> = database) => openedAttempt(on, ref);

const record = (
  ref: { notificationId: string; attemptNumber: number },
  outcome: DeliveryOutcome,
  end: Parameters<typeof recordAttempt>[3] = null,
  { db }: Pick<OpenTestDatabase, 'db'> = database,
) => recordAttempt(db, ref, { outcome, address: '192.0.2.1' }, end);

const row = async (notificationId: string) =>
  (await database.sql`select * from notifications_now where notification_id = ${notificationId}`)[0];
const attemptsOf = (notificationId: string) =>
  database.sql`select attempt_number, outcome, failure, http_status from delivery_attempts
    where notification_id = ${notificationId} order by 1`;
const countsOf = (partnerId: string) =>
  database.sql`select month::text, delivered, failed, reserved from monthly_counts
    where partner_id = ${partnerId} order by month`;

describe('a place in the month', () => {
  test('is taken with the row, becomes a count with the first 2xx, and is counted once', async () => {
    await setServiceClock(database, '2026-11-21T12:00:00Z');
    const { partnerId } = await newPartner();
    const ref = await opened(await stored(partnerId));
    expect(await countsOf(partnerId)).toEqual([
      { month: '2026-11-01', delivered: 0, failed: 0, reserved: 1 },
    ]);
    for (let times = 0; times < 3; times += 1) await record(ref, DELIVERED);
    expect(await countsOf(partnerId)).toEqual([
      { month: '2026-11-01', delivered: 1, failed: 0, reserved: 0 },
    ]);
    expect(await row(ref.notificationId)).toMatchObject({
      state: 'delivered',
      attempts: 1,
      end_reason: null,
    });
  });

  test('is given back when the ladder is exhausted, and the failure is counted apart', async () => {
    const { partnerId } = await newPartner();
    const ref = await opened(await stored(partnerId));
    const end = { state: 'failed', reason: 'exhausted' } as const;
    for (let times = 0; times < 2; times += 1) await record(ref, FAILED, end);
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 0, failed: 1, reserved: 0 }]);
    expect(await row(ref.notificationId)).toMatchObject({ state: 'failed', end_reason: 'exhausted' });
  });

  test('exists a hundred times: of 130 at once 100 are stored, and the refused leave nothing', async () => {
    const { partnerId } = await newPartner();
    const answers = await Promise.all(Array.from({ length: 130 }, () => storeTest(database, { partnerId })));
    expect(answers.filter(({ refused }) => refused === null)).toHaveLength(100);
    expect(answers.filter(({ refused }) => refused instanceof TestLimitReached)).toHaveLength(30);
    const [{ count } = { count: 0 }] = await database.sql<{ count: number }[]>`
      select count(*)::int as count from notifications_now where partner_id = ${partnerId}`;
    expect(count).toBe(100);
    expect(await countsOf(partnerId)).toMatchObject([{ reserved: 100 }]);
  });

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

  test('moves to the month that the attempt starts in, by the clock of UTC', async () => {
    await setServiceClock(database, '2026-11-30T23:59:59.9Z');
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    await setServiceClock(database, '2026-12-01T00:00:00.1Z');
    const elsewhere = openDatabaseAt(database.url, { poolSize: 1, statementTimeoutMs: 10_000 });
    await elsewhere.sql`set time zone 'Pacific/Auckland'`;
    const attempt = await opened(ref, elsewhere);
    expect(await countsOf(partnerId)).toMatchObject([
      { month: '2026-11-01', reserved: 0 },
      { month: '2026-12-01', reserved: 1 },
    ]);
    await record(attempt, DELIVERED, null, elsewhere);
    await elsewhere.close();
    expect(await countsOf(partnerId)).toMatchObject([
      { month: '2026-11-01', delivered: 0, reserved: 0 },
      { month: '2026-12-01', delivered: 1, reserved: 0 },
    ]);
  });

  test('that a full new month does not have ends the notification unsent', async () => {
    await setServiceClock(database, '2026-11-30T23:59:00Z');
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    await setServiceClock(database, '2026-12-01T00:00:00Z');
    for (let times = 0; times < 100; times += 1) await storeTest(database, { partnerId });
    expect(await openAttempt(database.db, ref)).toEqual({ kind: 'monthly_limit' });
    expect(await attemptsOf(ref.notificationId)).toHaveLength(0);
    await endNotification(database.db, ref, { state: 'failed', reason: 'monthly_limit' });
    expect(await countsOf(partnerId)).toMatchObject([{ reserved: 0 }, { reserved: 100 }]);
  });
});

describe('an attempt', () => {
  test('a result that contradicts its row, or has none, changes nothing', async () => {
    const { partnerId } = await newPartner();
    const first = await opened(await stored(partnerId));
    await record(first, FAILED);
    const before = [
      await row(first.notificationId),
      await attemptsOf(first.notificationId),
      await countsOf(partnerId),
    ];
    await expect(record(first, DELIVERED)).rejects.toThrow(/attempt 1 of ntf_\w+ is recorded as failed/);
    await expect(record({ ...first, attemptNumber: 2 }, DELIVERED)).rejects.toThrow(
      /attempt 2 of ntf_\w+ has no row/,
    );
    await expect(
      record({ ...first, attemptNumber: 2 }, FAILED, { state: 'failed', reason: 'exhausted' }),
    ).rejects.toThrow('has no row');
    const after = [
      await row(first.notificationId),
      await attemptsOf(first.notificationId),
      await countsOf(partnerId),
    ];
    expect(after).toEqual(before);
  });

  test('left open by a process that died is unknown, and the next one has the next number', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    await opened(ref);
    const second = await opened(ref);
    expect(second.attemptNumber).toBe(2);
    await record(second, DELIVERED);
    expect(await attemptsOf(ref.notificationId)).toEqual([
      { attempt_number: 1, outcome: 'unknown', failure: null, http_status: null },
      { attempt_number: 2, outcome: 'delivered', failure: null, http_status: 200 },
    ]);
  });

  test('is refused to another generation, and after the end', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    expect(await openAttempt(database.db, { ...ref, generation: 2 })).toEqual({ kind: 'superseded' });
    await record(await opened(ref), DELIVERED);
    expect(await openAttempt(database.db, ref)).toEqual({ kind: 'over', state: 'delivered', reason: null });
  });

  test('goes to the endpoint of now, with the secrets of now', async () => {
    const { partnerId, endpointId } = await newPartner();
    const ref = await stored(partnerId);
    expect((await opened(ref)).attempt.endpoint).toMatchObject({ endpointId });
    const next = await addEndpoint(database, { partnerId, url: 'https://other.example/y', keyRing });
    const { attempt } = await opened(ref);
    expect(attempt.endpoint).toEqual({ endpointId: next.endpointId, url: 'https://other.example/y' });
    expect(attempt.secrets.map((sealed) => keyRing.open(sealed, sealed))).toEqual([next.secret]);
  });

  test('is not made without an active endpoint', async () => {
    const { partnerId, endpointId } = await newPartner();
    const ref = await stored(partnerId);
    await database.db.transaction((tx) =>
      setEndpointState(tx, endpointId, { state: 'disabled', reason: 'operator' }),
    );
    expect(await openAttempt(database.db, ref)).toMatchObject({ kind: 'no_endpoint' });
    expect((await storeTest(database, { partnerId })).refused).toMatchObject({ why: 'no_endpoint' });
  });

  test('that delivers what had failed before takes the failure out of the count', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    await record(await opened(ref), FAILED, { state: 'failed', reason: 'exhausted' });
    await putInState(database, ref.notificationId, 'queued', { generation: 2 });
    await record(await opened({ ...ref, generation: 2 }), DELIVERED);
    expect(await countsOf(partnerId)).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
  });
});

describe('of a workflow', () => {
  test('the first attempt is the one that was sent, whatever could not be signed', async () => {
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

  test('the end says of which event it was, once, so that failed tests are told from lost events', async () => {
    const { partnerId } = await newPartner();
    const end = { state: 'failed', reason: 'exhausted' } as const;
    const ref = await stored(partnerId);
    expect(await endNotification(database.db, ref, end)).toBe(TEST_EVENT_TYPE);
    expect(await endNotification(database.db, ref, end)).toBeNull();
    const { notificationId } = await storeStatus(database, { partnerId });
    expect(await endNotification(database.db, { notificationId, generation: 2 }, end)).toBeNull();
    const type = await endNotification(database.db, { notificationId, generation: 1 }, end);
    expect(type).toBe('credit_application.accepted');
  });

  test('one that replaces another is told what is planned, again when that answer was lost, and may then send', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    const next = { ...ref, generation: 2 };
    await database.sql`update deliveries set state = 'started', step = 3, paused_at = service_now(),
      next_attempt_at = service_now() + interval '1 hour' where notification_id = ${ref.notificationId}`;
    expect(await restartNotification(database.db, ref)).toBe(true);
    const plan = { kind: 'wait', step: 3, paused: true, waitMs: expect.any(Number) };
    expect(await openAttempt(database.db, next, { told: false })).toEqual(plan);
    expect(await openAttempt(database.db, next, { told: false })).toEqual(plan);
    expect(await openAttempt(database.db, next)).toMatchObject({ kind: 'open', step: 3 });
  });
});
