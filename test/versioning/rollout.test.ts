import { randomBytes } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import Long from 'long';
import type { createActivities } from '../../activities';
import { workerDeployment } from '../../runtime/worker-deployments';
import { openWorkerSession } from '../../runtime/worker-session';
import { deliveryWorkflowId } from '../../workflows/names';
import { bundleWith } from '../support/bundles';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { until } from '../support/delivery';
import { deploymentsOf } from '../support/deployments';
import { storeTest } from '../support/notifications';
import { prebuiltBundle, testTemporal } from '../support/temporal';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const temporal = testTemporal();
/** Event of a history: a reset goes back to the one before it. */
const FIRST_TASK_COMPLETED = 4;
/** Steps short enough to see, and enough of them for processes to start meanwhile. */
const LADDER = { TEST_LADDER_SECONDS: ['0', ...Array.from({ length: 29 }, () => '3')].join() };
let directory: string;
let clone: TestDatabase;
let scene: CrashScene;
let deployment: string;

beforeAll(async () => {
  directory = await temporaryDirectory('bundles');
});
afterAll(() => removeDirectory(directory));
beforeEach(async () => {
  deployment = `rollout-${randomBytes(4).toString('hex')}`;
  clone = await createTestDatabase();
  scene = await openCrashScene({ databaseUrl: clone.url, temporal, client: () => temporal.env.client });
}, 300_000);
afterEach(async () => {
  await scene.close();
  await clone.close();
});

/** The processes of a release. */
const release = (buildId: string, bundle?: string) =>
  scene.worker({
    ...LADDER,
    WORKER_DEPLOYMENT: deployment,
    WORKER_BUILD_ID: buildId,
    ...(bundle !== undefined && { WORKFLOW_BUNDLE: bundle }),
  });
// How long the change is announced matters to eager starts only, which have a test of their own.
const orders = () =>
  workerDeployment(
    { namespace: temporal.namespace, connection: { address: temporal.address } },
    deployment,
    100,
  );
async function setCurrent(buildId: string): Promise<void> {
  // Its pollers may be a moment behind its readiness.
  await until(
    async () => (await orders().setCurrent(buildId)).kind === 'done',
    `${buildId} is current`,
    60_000,
  );
}
/** Stores a test. @returns its id and its workflow */
async function notify(): Promise<{ id: string; handle: WorkflowHandle }> {
  const { notificationId: id } = await storeTest(scene.database, { partnerId: scene.partnerId });
  return { id, handle: temporal.env.client.workflow.getHandle(deliveryWorkflowId(id, 1)) };
}
const rowOf = async (id: string) => (await scene.rows()).find((row) => row.id === id);
const attempts = async (id: string) => (await rowOf(id))?.attempts.length ?? 0;
const builds = async (handle: WorkflowHandle) => [...new Set(await deploymentsOf(handle))];

test('deliveries under way go over to build two and back to build one, by the steps of docs/operations.md', async () => {
  scene.receiver.behave(() => 503);
  const one = await release('one');
  await one.ready();
  await setCurrent('one');
  const early = await notify();
  await until(async () => (await attempts(early.id)) > 0, 'an attempt of build one', 60_000);

  const two = await release('two', await bundleWith(directory, 'retry ladder', 'ladder of build two'));
  await two.ready();
  await setCurrent('two');
  await until(async () => (await builds(early.handle)).includes('two'), 'it went over', 60_000);
  const late = await notify();
  await until(async () => (await attempts(late.id)) > 1, 'two attempts of build two', 60_000);
  expect(await builds(late.handle)).toEqual(['two']);
  expect(await one.end('SIGTERM')).toBe(0);
  expect((await late.handle.describe()).raw.workflowExtendedInfo).toBeDefined();
  const { events } = await early.handle.fetchHistory();
  const summaries = (events ?? []).flatMap(({ userMetadata: told }) =>
    told?.summary?.data ? [Buffer.from(told.summary.data).toString()] : [],
  );
  for (const text of ['retry ladder', 'ladder of build two'])
    expect(summaries.some((summary) => summary.includes(text))).toBe(true);

  const again = await release('one');
  await again.ready();
  await setCurrent('one');
  for (const { handle } of [early, late])
    await until(async () => (await deploymentsOf(handle)).at(-1) === 'one', 'it went back', 60_000);
  expect(await two.end('SIGTERM')).toBe(0);
  scene.receiver.behave(() => 200);
  expect((await scene.ended()).map(({ state, generation }) => [state, generation])).toEqual([
    ['delivered', 1],
    ['delivered', 1],
  ]);
  expect(await scene.counts()).toEqual([{ delivered: 2, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);

test('a build that cannot replay: the workflow task fails, going back heals it, nothing is lost (fault 74)', async () => {
  scene.receiver.behave(() => 503);
  const good = await release('good');
  await good.ready();
  await setCurrent('good');
  const early = await notify();
  await until(async () => (await attempts(early.id)) > 0, 'an attempt of the good build', 60_000);

  const bad = await release('bad', await bundleWith(directory, 'recordResult', 'recordSomething'));
  await bad.ready();
  await setCurrent('bad');
  const failed = async () =>
    ((await early.handle.fetchHistory()).events ?? []).some(({ workflowTaskFailedEventAttributes: task }) =>
      // In the API's numbering: the workflow went another way than its history.
      [24, 'WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR'].includes(task?.cause as never),
    );
  await until(failed, 'the workflow task fails', 60_000);
  // What begins now gets stuck in its own way: sent, and not recorded.
  const made = (await rowOf(early.id))?.attempts;
  scene.receiver.behave(() => 200);
  const sent = scene.receiver.received.length;
  const late = await notify();
  await until(() => scene.receiver.received.length > sent, 'the bad build sends', 60_000);
  expect([await rowOf(early.id), await rowOf(late.id)]).toEqual([
    expect.objectContaining({ state: 'started', attempts: made }),
    expect.objectContaining({ state: 'started', attempts: ['under way'] }),
  ]);

  await setCurrent('good');
  await until(async () => (await rowOf(early.id))?.state === 'delivered', 'it is delivered', 60_000);
  expect(await rowOf(early.id)).toMatchObject({ attempts: [...(made ?? []), 'delivered'] });
  expect(await bad.end('SIGTERM')).toBe(0);
  // What began on the bad build begins anew: the same event once more, counted once.
  await temporal.env.client.workflowService.resetWorkflowExecution({
    namespace: temporal.namespace,
    workflowExecution: { workflowId: late.handle.workflowId },
    workflowTaskFinishEventId: Long.fromNumber(FIRST_TASK_COMPLETED),
    reason: 'began on a bad build',
    requestId: randomBytes(8).toString('hex'),
  });
  expect((await scene.ended()).map(({ state }) => state)).toEqual(['delivered', 'delivered']);
  expect(await rowOf(late.id)).toMatchObject({ generation: 1, attempts: ['unknown', 'delivered'] });
  expect(await scene.counts()).toEqual([{ delivered: 2, failed: 0, reserved: 0 }]);
}, 180_000);

test('a worker without a new activity type: the activity fails and waits, the rollout heals it (fault 75)', async () => {
  const old = await openWorkerSession({
    connection: { address: temporal.address },
    namespace: temporal.namespace,
    taskQueue: scene.taskQueue,
    workflows: { bundle: await prebuiltBundle() },
    // A release before `sendAttempt` was there.
    activities: {
      sends: { sendOtherwise: async () => undefined },
      records: { recordOtherwise: async () => undefined },
      local: {},
    } as unknown as ReturnType<typeof createActivities>,
    mostSends: 10,
    mostWorkflowTasks: 24,
  });
  const { id, handle } = await notify();
  await temporal.env.client.workflow.start('deliverNotification', {
    workflowId: handle.workflowId,
    taskQueue: scene.taskQueue,
    args: [{ notificationId: id, generation: 1, ladderMs: [0] }],
  });
  const pending = async () => (await handle.describe()).raw.pendingActivities?.[0];
  await until(async () => ((await pending())?.attempt ?? 0) > 1, 'it is tried again', 30_000);
  const { lastFailure } = (await pending()) ?? {};
  expect(lastFailure?.message).toMatch(/sendAttempt.*not registered/);
  expect((await handle.describe()).status.name).toBe('RUNNING');
  expect(scene.receiver.received).toEqual([]);

  await old.stop();
  await scene.worker();
  expect(await scene.ended()).toEqual([
    expect.objectContaining({ state: 'delivered', generation: 1, attempts: ['delivered'] }),
  ]);
  expect(await scene.counts()).toEqual([{ delivered: 1, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
}, 120_000);
