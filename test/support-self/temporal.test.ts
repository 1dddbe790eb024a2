import { Worker } from '@temporalio/worker';
import { demand } from '../support/on-demand';
import { randomTaskQueue, testTemporal } from '../support/temporal';

const temporal = testTemporal();

test('runs a workflow on the shared dev server', async () => {
  const taskQueue = randomTaskQueue();
  const worker = await Worker.create({
    connection: temporal.env.nativeConnection,
    taskQueue,
    workflowsPath: require.resolve('./sleeper-workflow'),
  });
  const answer = await worker.runUntil(
    temporal.env.client.workflow.execute('sleeper', { taskQueue, workflowId: taskQueue, args: [10] }),
  );
  expect(answer).toBe('slept 10 ms');
});

test('is one server for all who ask', async () => {
  const again = await Promise.all([demand('temporal'), demand('temporal')]);
  expect(again).toEqual([
    { address: temporal.address, namespace: 'default' },
    { address: temporal.address, namespace: 'default' },
  ]);
});

test('fails with the reason when a part cannot be had', async () => {
  await expect(demand('what nobody offers')).rejects.toThrow('nobody offers');
});
