import { backlog, deliveryFigures } from '../../../db/figures';
import { cancelNotification, openAttempt, requeue } from '../../../db/notifications/attempt';
import { giveBack, markStarted } from '../../../db/notifications/claim';
import { pauseDeliveries, resumeDeliveries } from '../../../db/notifications/hold';
import { findNotification, whatTheyDo } from '../../../db/notifications/operator';
import { listToOrder, orderDeliveries } from '../../../db/notifications/orders';
import type { Tenant } from '../../../domain/tenant';
import { claimAll } from '../../support/claims';
import { emptyNotifications, useDatabase } from '../../support/database';
import {
  advanceServiceClock,
  newPartner,
  setServiceClock,
  storeStatus,
  storeTest,
} from '../../../testbed/notifications';
import { attempt } from '../../support/partner-events';
import { FAILED } from '../../../testbed/values';

/** A delivery that found no slot for long, or whose partner is paused, is queued again, and goes on where it was. */

const database = useDatabase({ poolSize: 12 });
let tenant: Tenant;
beforeEach(async () => {
  await setServiceClock(database, null);
  await emptyNotifications(database);
  tenant = { partnerId: (await newPartner(database)).partnerId, environment: 'sandbox' };
});

const WAIT_MS = 90_000;
const claim = async () => (await claimAll(database.sql, { leaseMs: 10_000 })).claimed;
const first = (notificationId: string) => ({ notificationId, generation: 1 });
const second = (notificationId: string) => ({ notificationId, generation: 2 });
const doing = async (id: string) => {
  const one = await findNotification(database.db, id);
  if (one === null) throw new Error('it is gone');
  return (await whatTheyDo(database.db, [one]))(one).doing;
};

/** Stores one whose first attempt has failed, and queues it again. */
async function requeued(): Promise<string> {
  const { notificationId } = await storeStatus(database, tenant);
  await markStarted(database.sql, await claim());
  await attempt(database, notificationId, FAILED, 1);
  expect(await requeue(database.sql, first(notificationId), WAIT_MS)).toBe(true);
  return notificationId;
}

test('one that was hurried on by retry-now is not put off until its planned attempt', async () => {
  const { notificationId } = await storeStatus(database, tenant);
  await claim();
  await attempt(database, notificationId, FAILED, 1);
  await database.sql`update deliveries set next_attempt_at = service_now() + interval '10 hours'`;
  expect(await orderDeliveries(database.sql, 'retry_now', [notificationId], 'jane')).toHaveLength(1);
  await requeue(database.sql, first(notificationId), WAIT_MS);
  await advanceServiceClock(database, 91);
  await claim();
  expect(await openAttempt(database.sql, second(notificationId))).toMatchObject({
    kind: 'open',
  });
});

test('a retry that was queued again is not reported as an event that nobody begins to send', async () => {
  const id = await requeued();
  await database.sql`update deliveries set due_at = service_now() - interval '1 hour' where notification_id = ${id}`;
  expect(await backlog(database.db)).toMatchObject({ pending: 1, oldestMs: 0 });
  expect(await deliveryFigures(database.db)).toMatchObject({ undelivered: { queued: 1 } });
});

test('a pause that was ordered before counts, and ends by an order to resume', async () => {
  const { notificationId: id } = await storeStatus(database, tenant);
  await markStarted(database.sql, await claim());
  await attempt(database, id, FAILED, 1);
  expect(await orderDeliveries(database.sql, 'pause', [id], 'jane')).toHaveLength(1);
  await requeue(database.sql, first(id), WAIT_MS);
  expect(await doing(id)).toBe('paused');
  expect(await listToOrder(database.sql, { ...tenant, environment: null }, 'resume')).toEqual([id]);
  await advanceServiceClock(database, 91);
  await claim();
  expect(await openAttempt(database.sql, second(id))).toMatchObject({
    kind: 'wait',
    because: 'paused',
    attempts: 1,
  });
  expect(await orderDeliveries(database.sql, 'resume', [id], 'jane')).toHaveLength(1);
  expect(await openAttempt(database.sql, second(id))).toMatchObject({ kind: 'open' });
});

test('a dispatcher that could not start an earlier generation does not give back the present one', async () => {
  const id = await requeued();
  await advanceServiceClock(database, 91);
  await claim();
  const taken = async () => (await database.sql`select from deliveries where taken_at is not null`).length;
  await giveBack(database.sql, [first(id)], 1_000);
  expect(await taken()).toBe(1);
  await giveBack(database.sql, [second(id)], 1_000);
  expect(await taken()).toBe(0);
});

/** They are queued again, too: no workflow waits for the end of the pause. */
describe('while their partner is paused', () => {
  const pause = () => database.db.transaction((tx) => pauseDeliveries(tx, tenant, 'jane'));
  const resume = () => database.db.transaction((tx) => resumeDeliveries(tx, tenant, 'joe'));
  const claimedIds = async () => (await claim()).map(({ notificationId }) => notificationId);
  const rowOf = async (id: string) =>
    (
      await database.sql`
        select state, generation, attempts, step, taken_at, next_attempt_at is not null as planned
        from deliveries where notification_id = ${id}`
    )[0];

  test('only the environment that was named is paused', async () => {
    const live = { ...tenant, environment: 'live' } as const;
    await database.db.transaction((tx) => pauseDeliveries(tx, live, 'jane'));
    const { notificationId } = await storeStatus(database, tenant);
    expect(await claimedIds()).toEqual([notificationId]);
  });

  test.each([
    ['a first attempt that was claimed before', 0],
    ['a retry', 1],
  ] as const)('%s is not made and spends nothing; later it continues at its step', async (_, failed) => {
    const { notificationId } = await storeStatus(database, tenant);
    await claim();
    if (failed === 1) await attempt(database, notificationId, FAILED, 1);
    await pause();
    const old = first(notificationId);
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
    const opened = await openAttempt(database.db, second(notificationId));
    expect(opened).toMatchObject({ kind: 'open', attemptNumber: failed + 1 });
  });

  test('a pause waits for the attempts that two workers are opening, and each that begins later sees it', async () => {
    const [one, two] = [await storeStatus(database, tenant), await storeStatus(database, tenant)];
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
    expect(await openAttempt(database.db, first(notificationId))).toEqual({ kind: 'paused' });
    const reserved = () => database.sql`select reserved from monthly_counts`;
    expect([...(await reserved())]).toEqual([{ reserved: 1 }]);
    const cancel = () => database.db.transaction((tx) => cancelNotification(tx, notificationId));
    expect(await cancel()).toEqual({ kind: 'cancelled', was: 'queued', partnerId: tenant.partnerId });
    expect([...(await reserved())]).toEqual([{ reserved: 0 }]);
    expect(await openAttempt(database.db, second(notificationId))).toMatchObject({ kind: 'over' });
  });

  test('the figures show the pause, and what it delays is no sign that nothing is started', async () => {
    await storeStatus(database, tenant);
    await pause();
    await database.sql`update delivery_pauses set paused_at = service_now() - interval '2 hours'`;
    expect(await deliveryFigures(database.sql)).toMatchObject({ queuesPaused: 1 });
    expect((await deliveryFigures(database.sql)).oldestPausedMs).toBeGreaterThan(7_199_000);
    expect(await backlog(database.sql)).toMatchObject({ pending: 1, oldestMs: 0 });
    await resume();
    expect(await deliveryFigures(database.sql)).toMatchObject({ queuesPaused: 0, oldestPausedMs: 0 });
    expect((await backlog(database.sql)).oldestMs).toBeGreaterThan(0);
  });
});
