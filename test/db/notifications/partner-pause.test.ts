import { cancelNotification, openAttempt } from '../../../db/notifications/attempt';
import { pauseDeliveries, resumeDeliveries } from '../../../db/notifications/hold';
import { backlog, deliveryFigures } from '../../../db/figures';
import type { Tenant } from '../../../domain/tenant';
import { claimAll } from '../../support/claims';
import { emptyNotifications, useDatabase } from '../../support/database';
import { newPartner, storeStatus, storeTest } from '../../../testbed/notifications';
import { attempt } from '../../support/partner-events';
import { FAILED } from '../../../testbed/values';

const database = useDatabase({ poolSize: 12 });
let tenant: Tenant;
beforeEach(async () => {
  await emptyNotifications(database);
  tenant = { partnerId: (await newPartner(database)).partnerId, environment: 'sandbox' };
});

const pause = () => database.db.transaction((tx) => pauseDeliveries(tx, tenant, 'jane'));
const resume = () => database.db.transaction((tx) => resumeDeliveries(tx, tenant, 'joe'));
const claim = () => claimAll(database.db, { limit: 64, slots: 16, leaseMs: 60_000 });
const claimedIds = async () => (await claim()).claimed.map(({ notificationId }) => notificationId);
const store = () => storeStatus(database, tenant);
const rowOf = async (id: string) =>
  (
    await database.sql`
      select state, generation, attempts, step, taken_at, next_attempt_at is not null as planned
      from deliveries where notification_id = ${id}`
  )[0];

test('only the environment that was named is paused', async () => {
  const live = { ...tenant, environment: 'live' } as const;
  await database.db.transaction((tx) => pauseDeliveries(tx, live, 'jane'));
  const { notificationId } = await store();
  expect(await claimedIds()).toEqual([notificationId]);
});

test.each([
  ['a first attempt that was claimed before', 0],
  ['a retry', 1],
] as const)('%s is not made and spends nothing; later it continues at its step', async (_, failed) => {
  const { notificationId } = await store();
  await claim();
  if (failed === 1) await attempt(database, notificationId, FAILED, 1);
  await pause();
  const old = { notificationId, generation: 1 };
  expect(await openAttempt(database.db, old)).toEqual({ kind: 'paused' });
  expect(await rowOf(notificationId)).toEqual({
    state: 'queued',
    generation: 2,
    attempts: failed,
    step: failed,
    taken_at: null,
    planned: failed > 0,
  });
  // The worker died before Temporal had the answer, and the activity is repeated.
  expect(await openAttempt(database.db, old)).toMatchObject({ kind: 'over', status: 'superseded' });
  expect(await claimedIds()).toEqual([]);
  await resume();
  expect(await claimedIds()).toEqual([notificationId]);
  const opened = await openAttempt(database.db, { notificationId, generation: 2 });
  expect(opened).toMatchObject({ kind: 'open', attemptNumber: failed + 1 });
});

test('a pause waits for the attempts that two workers are opening, and each that begins later sees it', async () => {
  const [one, two] = [await store(), await store()];
  let isPaused = false;
  let pausing: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    expect(await openAttempt(tx, { ...one, generation: 1 })).toMatchObject({ kind: 'open' });
    pausing = pause().then(() => (isPaused = true));
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(isPaused).toBe(false);
  });
  await pausing;
  expect(await openAttempt(database.db, { ...two, generation: 1 })).toEqual({ kind: 'paused' });

  await resume();
  let opening: Promise<unknown> = Promise.resolve();
  await database.db.transaction(async (tx) => {
    await pauseDeliveries(tx, tenant, 'jane');
    opening = openAttempt(database.db, { ...two, generation: 2 });
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
  expect(await opening).toEqual({ kind: 'paused' });
});

test('a test keeps its unit of the quota, and one that is waiting can be cancelled', async () => {
  await pause();
  const { notificationId } = await storeTest(database, tenant);
  expect(await openAttempt(database.db, { notificationId, generation: 1 })).toEqual({ kind: 'paused' });
  const reserved = () => database.sql`select reserved from monthly_counts`;
  expect([...(await reserved())]).toEqual([{ reserved: 1 }]);
  const cancel = () => database.db.transaction((tx) => cancelNotification(tx, notificationId));
  expect(await cancel()).toEqual({ kind: 'cancelled', was: 'queued', partnerId: tenant.partnerId });
  expect([...(await reserved())]).toEqual([{ reserved: 0 }]);
  expect(await openAttempt(database.db, { notificationId, generation: 2 })).toMatchObject({ kind: 'over' });
});

test('the figures show the pause, and what it delays is no sign that nothing is started', async () => {
  await store();
  await pause();
  await database.sql`update delivery_pauses set paused_at = service_now() - interval '2 hours'`;
  expect(await deliveryFigures(database.sql)).toMatchObject({ queuesPaused: 1 });
  expect((await deliveryFigures(database.sql)).oldestPausedMs).toBeGreaterThan(7_199_000);
  expect(await backlog(database.sql)).toMatchObject({ pending: 1, oldestMs: 0 });
  await resume();
  expect(await deliveryFigures(database.sql)).toMatchObject({ queuesPaused: 0, oldestPausedMs: 0 });
  expect((await backlog(database.sql)).oldestMs).toBeGreaterThan(0);
});
