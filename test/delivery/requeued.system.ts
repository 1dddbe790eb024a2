import { progressQuery } from '../../workflows/deliver-notification';
import { opsJson } from '../ops/run';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { standingOf, storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';
import { testTemporal } from '../support/temporal';

/** A worker whose slots are all taken, and later one that has some. */

const temporal = testTemporal();
const service = useWorkers(temporal);
const { database, receiver } = service;
const LADDER = { DELIVERY_LADDER_SECONDS: '0,1,1' };
const FULL = { ...LADDER, SENDS_AT_ONCE: '0', BUSY_ROUNDS: '3' };
afterEach(async () => {
  await service.stop();
  receiver.reset();
});

const rowOf = (id: string) => standingOf(database, id);
const show = (id: string) => opsJson(database.url, 'notifications', 'show', id);

test('a retry that finds no slot is queued again, and is delivered once there is one', async () => {
  const partnerId = await service.newPartner();
  receiver.behave((nth) => (nth === 0 ? 503 : 200));
  const { notificationId } = await storeStatus(database, { partnerId });
  await service.start({ ...LADDER, DELIVERY_LADDER_SECONDS: '0,5,1' });
  await until(async () => (await rowOf(notificationId)).attempts.includes('failed'), 'the first attempt');
  await service.stop();

  const full = await service.start(FULL);
  const requeued = async () => (await rowOf(notificationId)).generation === 2;
  await until(requeued, 'it is queued again');
  const before = deliveryOf(temporal.client, notificationId);
  expect(await before.result()).toEqual({ status: 'queued', attempts: 1 });
  expect((await before.query(progressQuery)).phase).toBe('ended');
  expect(await rowOf(notificationId)).toMatchObject({ state: 'queued', made: 1 });
  expect(await show(notificationId)).toMatchObject({
    state: 'queued',
    now: { doing: 'put_back' },
  });
  expect(await full.worker.registry.metrics()).toContain('pfqs_delivery_requeued_total 1');
  expect(receiver.received).toHaveLength(1);
  await service.stop();

  await service.start(LADDER);
  await until(async () => (await rowOf(notificationId)).state === 'delivered', 'it is delivered');
  expect(await rowOf(notificationId)).toMatchObject({ generation: 2, made: 2 });
  expect(receiver.received).toHaveLength(2);
}, 180_000);
