import { Worker } from '@temporalio/worker';
import { bundleWith, prebuiltBundle } from '../support/temporal';
import { keptHistories } from '../support/histories';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

/** Histories that workers have written; a new workflow that could not go on with one would end it, and begin another. */
test('every kept history replays with the workflow of today', async () => {
  const kept = keptHistories();
  expect(kept.length).toBeGreaterThanOrEqual(17);
  const results = Worker.runReplayHistories({ workflowBundle: await prebuiltBundle() }, kept);
  let replayed = 0;
  for await (const { workflowId, error } of results) {
    if (error) throw new Error(`${workflowId}: ${error.message}`, { cause: error });
    replayed += 1;
  }
  expect(replayed).toBe(kept.length);
});

test('a workflow that was changed in place is found out by the kept histories', async () => {
  const directory = await temporaryDirectory('bundle');
  // The code of today, but for the name of one activity.
  const codePath = await bundleWith(directory, 'sendAttempt', 'sendSomething');
  let broken = 0;
  for await (const { error } of Worker.runReplayHistories({ workflowBundle: { codePath } }, keptHistories()))
    if (error?.name === 'DeterminismViolationError') broken += 1;
  expect(broken).toBeGreaterThan(5);
  await removeDirectory(directory);
});
