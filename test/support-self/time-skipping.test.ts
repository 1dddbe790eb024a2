import { Worker } from '@temporalio/worker';
import { randomTaskQueue, timeSkippingServer } from '../support/temporal';

const temporal = timeSkippingServer();

test('skips days in no time', async () => {
  const taskQueue = randomTaskQueue();
  const worker = await Worker.create({
    connection: temporal.env.nativeConnection,
    taskQueue,
    workflowsPath: require.resolve('./sleeper-workflow'),
  });
  const threeDaysMs = 3 * 86_400_000;
  const before = await temporal.env.currentTimeMs();
  const answer = await worker.runUntil(
    temporal.env.client.workflow.execute('sleeper', {
      taskQueue,
      workflowId: taskQueue,
      args: [threeDaysMs],
    }),
  );
  expect(answer).toBe(`slept ${threeDaysMs} ms`);
  expect((await temporal.env.currentTimeMs()) - before).toBeGreaterThanOrEqual(threeDaysMs);
});
