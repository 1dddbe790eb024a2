import { Worker } from '@temporalio/worker';
import { bundleWith, prebuiltBundle } from '../support/temporal';
import { keptHistories } from '../support/histories';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

/** Histories that workers have written; a new workflow that could not go on with one would stop ladders under way. */
const BRANCHES = [
  'busy',
  'cancelled',
  'cancelled-during-an-attempt',
  'delivered-at-once',
  'fast-declined',
  'fast-failed-then-ladder',
  'fast-gone',
  'fast-record-left',
  'fast-recorded-with-its-send',
  'fast-retry-now',
  'fast-then-paused',
  'gone',
  'ladder-exhausted',
  'no-endpoint',
  'paused-and-resumed',
  'restarted',
  'restarted-paused',
  'retry-after',
  'retry-now',
  'test-ladder-exhausted',
];

test('every kept history replays with the workflow of today', async () => {
  const kept = keptHistories();
  expect(kept.map(({ workflowId }) => workflowId).toSorted()).toEqual(BRANCHES);
  const replayed: string[] = [];
  const results = Worker.runReplayHistories({ workflowBundle: await prebuiltBundle() }, kept);
  for await (const { workflowId, error } of results) {
    if (error) throw new Error(`${workflowId}: ${error.message}`, { cause: error });
    replayed.push(workflowId);
  }
  expect(replayed.toSorted()).toEqual(BRANCHES);
}, 60_000);

test('a workflow that was changed in place is found out by the kept histories', async () => {
  const directory = await temporaryDirectory('bundle');
  // The code of today, but for the name of one activity.
  const codePath = await bundleWith(directory, 'recordResult', 'recordSomething');
  const broken = [];
  for await (const { error } of Worker.runReplayHistories(
    { workflowBundle: { codePath } },
    keptHistories(),
  )) {
    if (error?.name === 'DeterminismViolationError') broken.push(error);
  }
  expect(broken.length).toBeGreaterThan(5);
  await removeDirectory(directory);
}, 60_000);
