import { temporal as proto } from '@temporalio/proto';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { SendActivities } from '../../activities';
import { sendsQueueOf } from '../../workflows/names';
import { type TestWorker } from '../support/delivery';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { comesTo, standingOf, storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';
import { testTemporal } from '../support/temporal';

/** A neighbour who reaches a Temporal without TLS, and answers in our place. */
const temporal = testTemporal();
const service = useWorkers(temporal);
const { database, taskQueue } = service;
const SETTINGS = {
  DELIVERY_LADDER_SECONDS: '0,1,3600',
  RECONCILE_AFTER_MS: '2000',
  DISPATCH_SWEEP_MS: '500',
};
let worker: TestWorker;
let partnerId: string;

beforeAll(async () => {
  partnerId = await service.newPartner();
  worker = await service.start(SETTINGS);
}, 300_000);

const rowOf = (notificationId: string) => standingOf(database, notificationId);

type Send = SendActivities['sendAttempt'];

/** Polls the queue of the sends beside our worker, and answers that everything was delivered, in an attempt that nobody of ours opened. */
async function startRogue() {
  const connection = await NativeConnection.connect({ address: temporal.address });
  const taken: string[] = [];
  const sendAttempt: Send = ({ notificationId }) => {
    taken.push(notificationId);
    const outcome = { kind: 'delivered', httpStatus: 200, durationMs: 1 } as const;
    return Promise.resolve({ kind: 'sent', attemptNumber: 2, outcome, address: '203.0.113.9', next: null });
  };
  const rogue = await Worker.create({
    connection,
    namespace: temporal.namespace,
    taskQueue: sendsQueueOf(taskQueue),
    activities: { sendAttempt },
  });
  const running = rogue.run();
  return {
    taken,
    async stop() {
      rogue.shutdown();
      await running;
      await connection.close();
    },
  };
}

test('a rogue worker reports a delivery: nothing changes, and the delivery is made', async () => {
  service.receiver.behave(() => 500);
  const rogue = await startRogue();
  // Our worker polls as well, so the rogue does not get every task. A second attempt is what we look at.
  let notificationId: string | undefined;
  for (let tries = 0; notificationId === undefined && tries < 20; tries += 1) {
    for (let nth = 0; nth < 4; nth += 1) await storeStatus(database, { partnerId });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    for (const taken of rogue.taken) if ((await rowOf(taken)).attempts.length === 1) notificationId ??= taken;
  }
  if (notificationId === undefined) throw new Error('the rogue got no second attempt');
  const id = notificationId;
  await rogue.stop();

  const refused = () => worker.logs.some((line) => line.includes(id) && line.includes('counts for nothing'));
  await until(refused, 'the result is refused', 30_000);
  // On a slow machine its next attempt may have been made by now.
  const { made, attempts, delivered } = await rowOf(id);
  expect({ first: attempts[0], made, delivered }).toEqual({
    first: 'failed',
    made: attempts.length,
    delivered: false,
  });
  expect(attempts).not.toContain('delivered');
  const counts = await database.sql`select 1 from monthly_counts where delivered > 0`;
  expect(counts).toEqual([]);

  service.receiver.behave(() => 200);
  // By a new workflow.
  await comesTo(database, id, 'delivered');
  expect((await rowOf(id)).attempts).toEqual(['failed', 'delivered']);
  const forged = await deliveryOf(temporal.client, id).describe();
  expect(forged.status.name).toBe('FAILED');
}, 180_000);

test('a rogue worker completes a workflow: nothing changes, and the delivery is made', async () => {
  service.receiver.behave(() => 500);
  const { notificationId } = await storeStatus(database, { partnerId });
  const failed = async () => (await rowOf(notificationId)).attempts.includes('failed');
  await until(failed, 'the first attempt failed', 30_000);
  await service.stop();

  const { namespace } = temporal;
  const { workflowService } = temporal.env.connection;
  const handle = deliveryOf(temporal.client, notificationId);
  // Its next task comes to the common queue once our worker's own has not been polled for some seconds.
  await handle.signal('retryNow');
  for (;;) {
    const task = await temporal.env.connection.withDeadline(Date.now() + 30_000, () =>
      workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name: taskQueue }, identity: 'rogue' }),
    );
    const { taskToken, workflowExecution } = task;
    if (workflowExecution?.workflowId !== handle.workflowId) continue;
    await workflowService.respondWorkflowTaskCompleted({
      namespace,
      taskToken,
      identity: 'rogue',
      commands: [
        {
          commandType: proto.api.enums.v1.CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
          completeWorkflowExecutionCommandAttributes: {},
        },
      ],
    });
    break;
  }
  expect((await handle.describe()).status.name).toBe('COMPLETED');
  expect(await rowOf(notificationId)).toMatchObject({ state: 'started', made: 1, delivered: false });

  service.receiver.behave(() => 200);
  await service.start(SETTINGS);
  await comesTo(database, notificationId, 'delivered');
  expect((await rowOf(notificationId)).attempts).toEqual(['failed', 'delivered']);
}, 180_000);
