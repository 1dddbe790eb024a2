import { randomBytes } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { temporalOrders, type DeploymentState } from '../../ops/temporal';
import { deliveryWorkflowId } from '../../workflows/names';
import { openCrashScene, type CrashScene, type NotificationRow } from '../support/crash-scene';
import { until } from '../support/delivery';
import { deploymentsOf } from '../support/deployments';
import { storeTest } from '../support/notifications';
import type { TestTemporal } from '../support/temporal';
import type { WorkerProcess } from '../support/worker-process';

/** Steps short enough to see, and enough of them for processes to start meanwhile. */
const LADDER = { TEST_LADDER_SECONDS: ['0', ...Array.from({ length: 29 }, () => '3')].join() };

/** A partner, and worker processes of several releases in a deployment of their own. */
export interface Releases {
  readonly scene: CrashScene;
  /** Starts a worker process of a build; not awaited. */
  readonly release: (
    buildId: string,
    environment?: Readonly<Record<string, string>>,
  ) => Promise<WorkerProcess>;
  readonly setCurrent: (buildId: string) => Promise<void>;
  /** @throws when Temporal cannot say. */
  readonly deployment: () => Promise<DeploymentState>;
  /** Stores a test. @returns its id and its workflow */
  readonly notify: () => Promise<{ id: string; handle: WorkflowHandle }>;
  readonly rowOf: (id: string) => Promise<NotificationRow | undefined>;
  /** How many attempts there are. */
  readonly attempts: (id: string) => Promise<number>;
  /** Those that worked on a delivery. */
  readonly builds: (handle: WorkflowHandle) => Promise<(string | null)[]>;
  readonly close: () => Promise<void>;
}

export async function openReleases(temporal: TestTemporal): Promise<Releases> {
  const deploymentName = `rollout-${randomBytes(4).toString('hex')}`;
  const scene = await openCrashScene({
    temporal,
    client: () => temporal.env.client,
  });
  // How long the change is announced matters to eager starts only, which have a test of their own.
  const orders = temporalOrders(
    { namespace: temporal.namespace, connection: { address: temporal.address } },
    { taskQueue: 'none', deployment: deploymentName },
    100,
  );
  const rowOf = async (id: string) => (await scene.rows()).find((row) => row.id === id);
  return {
    scene,
    release: (buildId, environment = {}) =>
      scene.worker({
        ...LADDER,
        WORKER_DEPLOYMENT: deploymentName,
        WORKER_BUILD_ID: buildId,
        ...environment,
      }),
    // Its pollers may be a moment behind its readiness.
    setCurrent: (buildId) =>
      until(
        () =>
          orders.setCurrent(buildId).then(
            () => true,
            () => false,
          ),
        `${buildId} is current`,
        60_000,
      ),
    deployment: () => orders.describeDeployment(),
    async notify() {
      const { notificationId: id } = await storeTest(scene.database, { partnerId: scene.partnerId });
      return { id, handle: temporal.env.client.workflow.getHandle(deliveryWorkflowId(id, 1)) };
    },
    rowOf,
    attempts: async (id) => (await rowOf(id))?.attempts.length ?? 0,
    builds: async (handle) => [...new Set(await deploymentsOf(handle))],
    close: () => scene.close(),
  };
}
