import { randomBytes } from 'node:crypto';
import { temporalOrders } from '../../ops/temporal';
import { deliveryWorkflowId } from '../../workflows/names';
import { openCrashScene } from '../support/crash-scene';
import { succeeds, until } from '../support/delivery';
import { storeTest } from '../support/notifications';
import type { TestTemporal } from '../support/temporal';

/** Steps short enough to see, and enough of them for processes to start meanwhile. */
const LADDER = { TEST_LADDER_SECONDS: ['0', ...Array.from({ length: 29 }, () => '3')].join() };

export type Releases = Awaited<ReturnType<typeof openReleases>>;

/** A partner, and worker processes of several releases in a deployment of their own. */
export async function openReleases(temporal: TestTemporal) {
  const deploymentName = `rollout-${randomBytes(4).toString('hex')}`;
  const scene = await openCrashScene({ temporal });
  // How long the change is announced matters to eager starts only, which have a test of their own.
  const orders = temporalOrders(
    { namespace: temporal.namespace, connection: { address: temporal.address } },
    { taskQueue: scene.taskQueue, deployment: deploymentName },
    100,
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
    deployment: () => orders.describeDeployment(),
    /** What `ops deployments check` of a release with this code would find. */
    check: (codePath: string) => orders.replayRunning({ bundle: { codePath } }, 10),
    /** Stores a test. @returns its id and its workflow */
    notify: async () => {
      const { notificationId: id } = await storeTest(scene.database, { partnerId: scene.partnerId });
      return { id, handle: temporal.client.workflow.getHandle(deliveryWorkflowId(id, 1)) };
    },
    rowOf,
    attempts: async (id: string) => (await rowOf(id))?.attempts.length ?? 0,
    close: () => scene.close(),
  };
}
