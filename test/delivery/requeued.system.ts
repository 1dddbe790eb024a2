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
const { database } = service;
const LADDER = { DELIVERY_LADDER_SECONDS: '0,1,1' };
const FULL = { ...LADDER, SENDS_AT_ONCE: '0', BUSY_ROUNDS: '3' };
afterEach(async () => {
  await service.stop();
  service.receiver.reset();
});

const rowOf = (id: string) => standingOf(database, id);
const show = (id: string) => opsJson(database.url, 'notifications', 'show', id);

test.each([
  ['a first attempt', 0],
  ['a retry', 1],
])(
  '%s that finds no slot is queued again, and is delivered once there is one',
  async (_what, failed) => {
    const partnerId = await service.newPartner();
    service.receiver.behave((nth) => (nth < failed ? 503 : 200));
    const { notificationId } = await storeStatus(database, { partnerId });
    if (failed > 0) {
      await service.start({ ...LADDER, DELIVERY_LADDER_SECONDS: '0,5,1' });
      await until(async () => (await rowOf(notificationId)).attempts.includes('failed'), 'the first attempt');
      await service.stop();
    }
    const full = await service.start(FULL);
    const requeued = async () => (await rowOf(notificationId)).generation === 2;
    await until(requeued, 'it is queued again', 60_000);
    const before = deliveryOf(temporal.client, notificationId);
    expect(await before.result()).toEqual({ status: 'queued', attempts: failed });
    expect((await before.query(progressQuery)).phase).toBe('ended');
    expect(await rowOf(notificationId)).toMatchObject({ state: 'queued', made: failed });
    expect(await show(notificationId)).toMatchObject({ state: 'queued', now: { doing: 'put_back' } });
    expect(await full.worker.registry.metrics()).toContain('pfqs_delivery_requeued_total 1');
    expect(service.receiver.received).toHaveLength(failed);
    await service.stop();

    await service.start(LADDER);
    await until(async () => (await rowOf(notificationId)).state === 'delivered', 'it is delivered', 60_000);
    expect(await rowOf(notificationId)).toMatchObject({ generation: 2, made: failed + 1 });
    expect(service.receiver.received).toHaveLength(failed + 1);
  },
  180_000,
);
