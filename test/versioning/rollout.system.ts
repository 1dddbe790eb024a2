import { randomBytes } from 'node:crypto';
import type { createActivities } from '../../activities';
import { temporalOrders } from '../../ops/temporal';
import { openWorkerSession } from '../../worker/session';
import { bundleWith, sessionOptions, testTemporal } from '../support/temporal';
import { openCrashScene } from '../support/crash-scene';
import { succeeds, until } from '../../testbed/until';
import { deliveryOf, orderDelivery } from '../support/histories';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

const temporal = testTemporal();
let directory: string;
let releases: Awaited<ReturnType<typeof openReleases>>;

beforeAll(async () => {
  directory = await temporaryDirectory('bundles');
});
afterAll(() => removeDirectory(directory));
beforeEach(async () => {
  releases = await openReleases();
}, 300_000);
afterEach(() => releases.close());

/** Steps short enough to see, and enough of them for processes to start meanwhile. */
const LADDER = { TEST_LADDER_SECONDS: ['0', ...Array.from({ length: 29 }, () => '3')].join() };

/** A partner, and worker processes of several releases in a deployment of their own. */
async function openReleases() {
  const deploymentName = `rollout-${randomBytes(4).toString('hex')}`;
  const scene = await openCrashScene({ temporal });
  // How long the change is announced matters to eager starts only, which have a test of their own.
  const orders = temporalOrders(
    { namespace: temporal.namespace, connection: { address: temporal.address } },
    { taskQueue: scene.taskQueue, deployment: deploymentName },
    { settleMs: 100, deadlineMs: 30_000 },
  );
  const rowOf = async (id: string) => (await scene.rows()).find((row) => row.id === id);
  return {
    scene,
    /** Starts a worker process of a build. */
    release: (buildId: string, environment: Readonly<Record<string, string>> = {}) =>
      scene.worker({
        ...LADDER,
        // As Temporal's Worker Controller names them.
        TEMPORAL_DEPLOYMENT_NAME: deploymentName,
        TEMPORAL_WORKER_BUILD_ID: buildId,
        ...environment,
      }),
    // Its pollers may be a moment behind its readiness.
    setCurrent: (buildId: string) =>
      until(() => succeeds(orders.setCurrent(buildId)), `${buildId} is current`, 60_000),
    /** What `ops deployments check` of a release with this code would find. */
    check: (codePath: string) => orders.replayRunning({ bundle: { codePath } }, 10),
    /** Stores a test. @returns its id and its workflow */
    notify: async () => {
      const { notificationId: id } = await scene.storeTest();
      return { id, handle: deliveryOf(temporal.client, id) };
    },
    rowOf,
    attempts: async (id: string) => (await rowOf(id))?.attempts.length ?? 0,
    close: () => scene.close(),
  };
}

test('a build that cannot replay: the workflow ends, its next generation continues, nothing is lost', async () => {
  const { scene, release, setCurrent, check, notify, attempts, rowOf } = releases;
  scene.receiver.behave(() => 503);
  const soon = { RECONCILE_AFTER_MS: '2000' };
  const good = await release('good', soon);
  await good.ready();
  await setCurrent('good');
  const early = await notify();
  await until(async () => (await attempts(early.id)) > 0, 'an attempt of the good build');

  const badCode = await bundleWith(directory, 'sendAttempt', 'sendSomething');
  await until(async () => (await check(badCode)).broken.length > 0, 'the check finds it');
  expect((await check(badCode)).broken).toEqual([
    { workflowId: early.handle.workflowId, error: expect.stringContaining('sendSomething') },
  ]);
  const bad = await release('bad', { WORKFLOW_BUNDLE: badCode, ...soon });
  await bad.ready();
  await setCurrent('bad');
  const restarted = async () => (await rowOf(early.id))?.generation === 2;
  await until(restarted, 'its history ends it, and the reconciler starts the next generation');
  expect((await early.handle.describe()).status.name).toBe('FAILED');
  // What begins now gets stuck in its own way: no worker has its activity.
  const made = (await rowOf(early.id))?.attempts;
  const late = await notify();
  const begun = async () => (await rowOf(late.id))?.state === 'started';
  await until(begun, 'the bad build starts it');
  expect(await rowOf(late.id)).toMatchObject({ state: 'started', attempts: [] });

  scene.receiver.behave(() => 200);
  await setCurrent('good');
  expect(await bad.end('SIGTERM')).toBe(0);
  // An order wakes both, whose histories the good build cannot continue either.
  const orders = { database: scene.database, client: temporal.client };
  for (const { id } of [early, late]) await orderDelivery(orders, 'retry_now', id);
  await until(async () => (await rowOf(early.id))?.state === 'delivered', 'it is delivered');
  expect(await rowOf(early.id)).toMatchObject({ generation: 3, attempts: [...(made ?? []), 'delivered'] });
  expect((await scene.ended()).map(({ state }) => state)).toEqual(['delivered', 'delivered']);
  expect(await rowOf(late.id)).toMatchObject({ generation: 2, attempts: ['delivered'] });
  expect(await scene.counts()).toEqual([{ delivered: 2, failed: 0, reserved: 0 }]);
}, 180_000);

test('a worker without a new activity type: the activity fails and waits, the rollout heals it', async () => {
  const { scene, notify } = releases;
  const old = await openWorkerSession(
    await sessionOptions(temporal, scene.taskQueue),
    // A release before `sendAttempt` was there.
    {
      sends: { sendOtherwise: async () => undefined },
      records: { recordOtherwise: async () => undefined },
      local: {},
    } as unknown as ReturnType<typeof createActivities>,
  );
  const { id, handle } = await notify();
  await temporal.client.workflow.start('deliverNotification', {
    workflowId: handle.workflowId,
    taskQueue: scene.taskQueue,
    args: [{ notificationId: id, generation: 1 }],
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
});
