import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, type Connection } from '@temporalio/client';
import type { DeploymentAnswer, DeploymentOrders, DeploymentState } from '../call';
import { overOwnConnection } from '../../runtime/temporal/connect';
import type { TemporalTarget } from '../../runtime/temporal/temporal-target';

/** A change waits until the queues of the build have it. */
const DEADLINE_MS = 15_000;
/**
 * From announcing a build to making it current: five seconds until every worker has heard or no longer trusts its last answer,
 * and twelve for a start that was asked for before that and is still being repeated by its connection.
 */
export const SETTLE_MS = 17_000;

/** In gRPC's numbering: invalid argument, not found, failed precondition. */
const REFUSED = new Set([3, 5, 9]);
/** In the API's numbering. */
const STATUS = ['unspecified', 'inactive', 'current', 'ramping', 'draining', 'drained', 'created'] as const;

/** The worker deployment of a name, over a connection per call. */
export function workerDeployment(
  target: TemporalTarget,
  deploymentName: string,
  settleMs = SETTLE_MS,
): DeploymentOrders {
  const named = { namespace: target.namespace, deploymentName };

  const call = <T>(work: (ask: Ask) => Promise<T>) =>
    overOwnConnection<DeploymentAnswer<T>>(target, DEADLINE_MS, async (connection) => {
      const ask: Ask = (request) =>
        connection.withDeadline(Date.now() + DEADLINE_MS, () => request(connection.workflowService));
      try {
        return { kind: 'done', value: await work(ask) };
      } catch (error) {
        if (!isGrpcServiceError(error) || !REFUSED.has(error.code)) throw error;
        return { kind: 'refused', why: error.details };
      }
    });

  async function read(ask: Ask): Promise<DeploymentState> {
    const { workerDeploymentInfo: info } = await ask((service) =>
      service.describeWorkerDeployment(named),
    ).catch((error: unknown) => {
      // No worker with a build id has ever come. (A namespace that is not there has the same code.)
      if (isGrpcServiceError(error) && error.details.includes('Deployment not found'))
        return { workerDeploymentInfo: null };
      throw error;
    });
    const { currentDeploymentVersion, rampingDeploymentVersion, rampingVersionPercentage } =
      info?.routingConfig ?? {};
    const ramping = rampingDeploymentVersion?.buildId;
    return {
      current: currentDeploymentVersion?.buildId || null,
      ramping: ramping ? { buildId: ramping, percent: rampingVersionPercentage ?? 0 } : null,
      builds: (info?.versionSummaries ?? []).map(({ deploymentVersion, status }) => ({
        buildId: deploymentVersion?.buildId ?? '',
        status: STATUS[status ?? 0] ?? 'unspecified',
      })),
    };
  }

  /** @param buildId null: nobody ramps any more. */
  const setRamp = (ask: Ask, buildId: string | null, percentage: number) =>
    ask((service) =>
      service.setWorkerDeploymentRampingVersion({ ...named, buildId: buildId ?? '', percentage }),
    );

  return {
    describe: () => call(read),
    /**
     * Makes a build current: announces it (a ramp of 0 %) so that no worker of another build asks for first tasks any
     * more, waits until that is so, and lets Temporal change over. For the build that is current already it ends a ramp.
     */
    setCurrent: (buildId) =>
      call(async (ask) => {
        const { current, ramping } = await read(ask);
        if (current === buildId) {
          if (ramping !== null) await setRamp(ask, null, 0);
          return;
        }
        await setRamp(ask, buildId, 0);
        await sleep(settleMs);
        await ask((service) => service.setWorkerDeploymentCurrentVersion({ ...named, buildId }));
      }),
    ramp: (buildId, percent) => call(async (ask) => void (await setRamp(ask, buildId, percent))),
  };
}

type Ask = <R>(request: (service: Connection['workflowService']) => Promise<R>) => Promise<R>;
