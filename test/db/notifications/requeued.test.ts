import { deliveryFigures, backlog } from '../../../db/figures';
import { openAttempt, requeue } from '../../../db/notifications/attempt';
import { giveBack, markStarted } from '../../../db/notifications/claim';
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
} from '../../../testbed/notifications';
import { attempt } from '../../support/partner-events';
import { FAILED } from '../../../testbed/values';

/** A delivery that found no slot for long is queued again, and goes on where it was. */

const database = useDatabase({ poolSize: 4 });
let tenant: Tenant;
beforeEach(async () => {
  await setServiceClock(database, null);
  await emptyNotifications(database);
  tenant = { partnerId: (await newPartner(database)).partnerId, environment: 'sandbox' };
});

const WAIT_MS = 90_000;
const claim = async () => (await claimAll(database.sql, { limit: 64, slots: 16, leaseMs: 10_000 })).claimed;
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
