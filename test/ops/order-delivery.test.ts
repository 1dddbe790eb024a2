import { ulid } from 'ulid';
import { TemporalUnreachable } from '../../ops/exit-codes';
import type { NotificationRef } from '../../db/notifications/notification';
import { temporalOrders } from '../../ops/temporal';
import type { TemporalTarget } from '../../runtime/temporal/temporal-target';
import { deliveryWorkflowId } from '../../workflows/names';
import { startTcpProxy } from '../support/tcp-proxy';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();
const target = () => ({ namespace: temporal.namespace, connection: { address: temporal.address } });
const orders = (at: TemporalTarget) => temporalOrders(at, { taskQueue: 'none', deployment: 'none' });
const newDelivery = () => ({ notificationId: `ntf_${ulid()}`, generation: 1 });
/** Starts a workflow that no worker takes: what counts is what Temporal has written down. */
const start = ({ notificationId, generation }: NotificationRef) =>
  temporal.env.client.workflow.start('deliverNotification', {
    workflowId: deliveryWorkflowId(notificationId, generation),
    taskQueue: randomTaskQueue(),
  });

test('wakes or cancels the workflow of that generation, and no other', async () => {
  const [delivery, doomed] = [newDelivery(), newDelivery()];
  const handle = await start(delivery);
  await orders(target()).wakeDelivery(delivery);
  // One that is not there reads its row when it begins.
  await orders(target()).wakeDelivery({ ...delivery, generation: 2 });
  const { events } = await handle.fetchHistory();
  const signals = events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName);
  expect(signals?.filter((name) => typeof name === 'string')).toEqual(['wake']);
  expect(await orders(target()).cancelDelivery({ ...delivery, generation: 2 })).toBe(false);

  const other = await start(doomed);
  expect(await orders(target()).cancelDelivery(doomed)).toBe(true);
  const cancelled = (await other.fetchHistory()).events;
  expect(cancelled?.some((event) => event.workflowExecutionCancelRequestedEventAttributes)).toBe(true);

  await handle.terminate();
  // One that has ended has read its row.
  await orders(target()).wakeDelivery(delivery);
});

test('a deployment of which no worker has connected has no builds', async () => {
  const none = { current: null, ramping: null, builds: [] };
  expect(await orders(target()).describeDeployment()).toEqual(none);
});

test('a namespace that is not there is no missing workflow', async () => {
  const elsewhere = { ...target(), namespace: 'no-such-namespace' };
  await expect(orders(elsewhere).wakeDelivery(newDelivery())).rejects.toThrow(/namespace/i);
});

test('reports within its deadline that Temporal cannot be reached, or does not answer', async () => {
  const gone = await startTcpProxy({ port: 1 });
  const frozen = await startTcpProxy({ port: Number(temporal.address.split(':')[1]) });
  frozen.freeze();
  await gone.close();
  const startedAt = performance.now();
  const asked = [gone, frozen].flatMap(({ port }) => {
    const address = `127.0.0.1:${port}`;
    const absent = orders({ ...target(), connection: { address } });
    const answers: Promise<unknown>[] = [
      absent.wakeDelivery(newDelivery()),
      absent.replayRunning({ folder: '' }, 300),
    ];
    return answers.map(async (answer) => ({ address, error: await answer.catch((error: unknown) => error) }));
  });
  for (const { address, error } of await Promise.all(asked)) {
    expect(error).toBeInstanceOf(TemporalUnreachable);
    expect(error).toMatchObject({ message: expect.stringContaining(address) });
  }
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await frozen.close();
});
