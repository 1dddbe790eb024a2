import { TestLimitReached } from '../../../db/notifications/quota';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { claimUnchecked, giveBack, markStarted, restartNotification } from '../../../db/notifications/claim';
import { openAttempt, endNotification, recordAttempt } from '../../../db/notifications/attempt';
import { createPartner } from '../../../db/catalogue/partners';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { openDatabaseAt, openTestDatabase, type OpenTestDatabase } from '../../support/database';
import {
  addEndpoint,
  claimAll,
  putInState,
  newKeyRingText,
  setServiceClock,
  storeTest,
} from '../../support/notifications';
import { DELIVERED, FAILED as FAILED_AT_ONCE } from '../../support/outcomes';

const FAILED = { ...FAILED_AT_ONCE, retryAfterMs: 1_000 };
const keyRing = parseKeyRing(newKeyRingText());
let database: OpenTestDatabase;
let partners = 200_000;

beforeAll(async () => {
  database = await openTestDatabase({ poolSize: 20 });
});

afterEach(() => setServiceClock(database, null));

afterAll(() => database.close());

/** A partner of its own with an endpoint, so that counts do not mix. */
async function newPartner(): Promise<{ partnerId: string; endpointId: string }> {
  partners += 1;
  const partnerId = `P${partners}`;
  await createPartner(database.db, { partnerId, name: 'Example' });
  const { endpointId } = await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing });
  return { partnerId, endpointId };
}

async function stored(partnerId: string) {
  const { notificationId, refused } = await storeTest(database, { partnerId });
  expect(refused).toBeNull();
  return { notificationId, generation: 1 };
}

async function opened(
  ref: { notificationId: string; generation: number },
  { db }: Pick<OpenTestDatabase, 'db'> = database,
) {
  const attempt = await openAttempt(db, ref);
  if (attempt.kind !== 'open') throw new Error(attempt.kind);
  return { ...ref, attemptNumber: attempt.attemptNumber, attempt };
}

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

  test('answered with 410 disables its endpoint', async () => {
    const { partnerId, endpointId } = await newPartner();
    const gone: DeliveryOutcome = { ...FAILED, failure: 'gone', httpStatus: 410 };
    const ended = await record(await opened(await stored(partnerId)), gone, {
      state: 'failed',
      reason: 'gone',
    });
    expect(ended.event).toMatchObject({ kind: 'endpoint_disabled', endpointId, details: { reason: 'gone' } });
    const [endpoint] = await database.sql`
      select state, disabled_reason from webhook_endpoints where endpoint_id = ${endpointId}`;
    expect(endpoint).toEqual({ state: 'disabled', disabled_reason: 'gone' });
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

describe('dispatching', () => {
  test('claims each due notification once, however many claim, until its lease ends', async () => {
    const { partnerId } = await newPartner();
    const ids = await Promise.all(Array.from({ length: 40 }, () => stored(partnerId)));
    const claims = await Promise.all(
      Array.from({ length: 8 }, () => claimAll(database, { limit: 10, leaseMs: 60_000 })),
    );
    const claimed = claims.flat().filter((one) => one.partnerId === partnerId);
    expect(new Set(claimed.map((one) => one.notificationId)).size).toBe(claimed.length);
    const rest = await claimAll(database, { limit: 100, leaseMs: 0 });
    const all = [...claimed, ...rest.filter((one) => one.partnerId === partnerId)];
    expect(all.map((one) => one.notificationId).toSorted()).toEqual(
      ids.map((one) => one.notificationId).toSorted(),
    );
  });

  test('gives back what could not be started, and leaves alone what is further', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    const mine = async (leaseMs: number) =>
      (await claimAll(database, { leaseMs })).filter((one) => one.partnerId === partnerId);
    const first = await mine(60_000);
    expect(first).toHaveLength(1);
    expect(await mine(60_000)).toHaveLength(0);
    await giveBack(database.db, first, 0);
    const again = await mine(60_000);
    await record(await opened(ref), DELIVERED);
    await markStarted(database.db, again);
    await giveBack(database.db, again, 0);
    expect(await row(ref.notificationId)).toMatchObject({ state: 'delivered' });
    expect(await mine(0)).toHaveLength(0);
  });

  test('restarts under a new generation, which the old workflow has no part in', async () => {
    const { partnerId } = await newPartner();
    const ref = await stored(partnerId);
    await markStarted(
      database.db,
      (await claimAll(database)).filter((one) => one.partnerId === partnerId),
    );
    const unchecked = (await claimUnchecked(database.db, { limit: 500, olderThanMs: 0 })).filter(
      (one) => one.notificationId === ref.notificationId,
    );
    expect(unchecked).toEqual([ref]);
    expect(await restartNotification(database.db, ref)).toBe(true);
    expect(await restartNotification(database.db, ref)).toBe(false);
    expect(await openAttempt(database.db, ref)).toEqual({ kind: 'superseded' });
    expect((await opened({ ...ref, generation: 2 })).attemptNumber).toBe(1);
  });

  it('a workflow that replaces one is told what is planned, again when that answer was lost, and may then send', async () => {
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
