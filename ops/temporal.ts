import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type Connection,
} from '@temporalio/client';
import type { NotificationRef } from '../db/notifications/notification';
import { Refused } from '../db/refused';
import { RETENTION_LIMIT, retentionScheduleId } from '../runtime/temporal/retention-schedule';
import { faultText, noAnswerInTime, reasonOfAbsence, withConnection } from '../runtime/temporal/connect';
import { lackOfSearchAttributes } from '../runtime/temporal/namespace';
import type { TemporalTarget } from '../runtime/temporal/temporal-target';
import { codeOptions, type WorkflowCode } from '../runtime/temporal/workflow-code';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { deliveryWorkflowId, WAKE_SIGNAL } from '../workflows/names';
import { TemporalUnreachable } from './exit-codes';

/** A person waits: Temporal answers in milliseconds, or in two seconds on a machine without CPU to spare, or is away. */
const ORDER_DEADLINE_MS = 3_000;
const RETENTION_DEADLINE_MS = 5_000;
/** A change of builds waits until the queues of the build have it; a busy server has been seen to need more than 15 s. */
const DEPLOYMENT_DEADLINE_MS = 30_000;
/** A change without an answer is asked for again, which changes nothing more. After the loss of a host one was not answered for over 30 s. */
const CHANGE_TRIES = 3;
/** Some hundreds of histories are read and replayed in seconds. */
const REPLAY_DEADLINE_MS = 300_000;
const deliveriesIn = (status: string) =>
  `WorkflowType = 'deliverNotification' AND ${SEARCH_ATTRIBUTE.status} = '${status}'`;
/** What is running at a release, by the step that it is in. */
const RUNNING = {
  sending: deliveriesIn('sending'),
  retrying: deliveriesIn('retrying'),
  paused: deliveriesIn('paused'),
  retention: "WorkflowType = 'applyRetention'",
};

/** From announcing a build to making it current: 5 s until every worker knows, 12 for a start that its connection still retries. */
const SETTLE_MS = 17_000;

/** In gRPC's numbering: invalid argument, not found, failed precondition. */
const REFUSED = new Set([3, 5, 9]);
/** In the API's numbering. */
const STATUS = ['unspecified', 'inactive', 'current', 'ramping', 'draining', 'drained', 'created'] as const;

type Ask = <R>(request: (service: Connection['workflowService']) => Promise<R>) => Promise<R>;

/** What commands ask of Temporal, over a connection for each call. Every method throws TemporalUnreachable, and Refused with the reason. */
export function temporalOrders(
  target: TemporalTarget,
  names: { readonly taskQueue: string; readonly deployment: string },
  { settleMs, deadlineMs: deploymentMs } = { settleMs: SETTLE_MS, deadlineMs: DEPLOYMENT_DEADLINE_MS },
) {
  const { namespace } = target;
  const { taskQueue, deployment: deploymentName } = names;
  const named = { namespace, deploymentName };

  async function connected<T>(deadlineMs: number, work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await withConnection(target, deadlineMs, work);
    } catch (error) {
      const absence = reasonOfAbsence(error, deadlineMs);
      if (absence === null) throw error;
      throw new TemporalUnreachable({ address: target.connection.address, ...absence });
    }
  }

  const withClient = <T>(deadlineMs: number, work: (workflow: Client['workflow']) => Promise<T>) =>
    connected(deadlineMs, (connection) =>
      connection.withDeadline(Date.now() + deadlineMs, () =>
        work(new Client({ connection, namespace }).workflow),
      ),
    );

  const aboutBuilds = <T>(work: (ask: Ask) => Promise<T>, deadlineMs = deploymentMs) =>
    connected(deadlineMs, async (connection) => {
      try {
        return await work((request) =>
          connection.withDeadline(Date.now() + deadlineMs, () => request(connection.workflowService)),
        );
      } catch (error) {
        if (!isGrpcServiceError(error) || !REFUSED.has(error.code)) throw error;
        throw new Refused('conflict', `Temporal refuses that: ${faultText(error)}`);
      }
    });

  async function read(ask: Ask) {
    const { workerDeploymentInfo: info } = await ask((service) =>
      service.describeWorkerDeployment(named),
    ).catch((error: unknown) => {
      // No worker with a build id has ever connected. (A missing namespace has the same code.)
      if (isGrpcServiceError(error) && /Deployment (not )?found/.test(error.details))
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

  async function change<R>(ask: Ask, request: Parameters<typeof ask<R>>[0]): Promise<R> {
    for (let tries = 1; ; tries += 1)
      try {
        return await ask(request);
      } catch (error) {
        if (!noAnswerInTime(error) || tries === CHANGE_TRIES) throw error;
      }
  }

  const setRamp = (ask: Ask, buildId: string | null, percentage: number) =>
    change(ask, (service) =>
      service.setWorkerDeploymentRampingVersion({ ...named, buildId: buildId ?? '', percentage }),
    );

  return {
    /** Requests the cancellation of a delivery's workflow. @returns false when it has ended, or never was. */
    cancelDelivery: (delivery: NotificationRef): Promise<boolean> =>
      withClient(ORDER_DEADLINE_MS, (workflow) => known(handleOf(workflow, delivery).cancel())),
    /**
     * Lets the workflow of a delivery read its row, which was changed. One that has ended, or that is started
     * later, reads it anyway.
     */
    wakeDelivery: async (delivery: NotificationRef): Promise<void> => {
      await withClient(ORDER_DEADLINE_MS, (workflow) =>
        known(handleOf(workflow, delivery).signal(WAKE_SIGNAL)),
      );
    },
    /**
     * Replays workflows that are running with other code, without making a step of theirs.
     * @param most of each kind, newest first
     * @returns how many of each kind were replayed, and which of them the code cannot continue
     */
    replayRunning: async (code: WorkflowCode, most: number) => {
      // One that is away is reported as quickly as by other orders.
      await withClient(ORDER_DEADLINE_MS, ({ workflowService }) => workflowService.getSystemInfo({}));
      return withClient(REPLAY_DEADLINE_MS, async (workflow) => {
        // Imported only here: its native module takes longer to load than most commands take to run.
        const { DefaultLogger, Runtime, Worker } = await import('@temporalio/worker');
        try {
          Runtime.install({ logger: new DefaultLogger('ERROR') });
        } catch {
          // A process that has run a worker has one.
        }
        const replayed: Record<string, number> = {};
        async function* histories() {
          for (const [kind, which] of Object.entries(RUNNING)) {
            replayed[kind] = 0;
            const query = `ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue}' AND ${which}`;
            for await (const { workflowId, runId } of workflow.list({ query, pageSize: 100 })) {
              if (replayed[kind] === most) break;
              replayed[kind] += 1;
              yield { workflowId, history: await workflow.getHandle(workflowId, runId).fetchHistory() };
            }
          }
        }
        const broken: { workflowId: string; error: string }[] = [];
        for await (const { workflowId, error } of Worker.runReplayHistories(codeOptions(code), histories()))
          if (error) broken.push({ workflowId, error: error.message });
        return { replayed, broken };
      });
    },
    /** Starts the workflow that removes expired data. @throws Refused while one that was started by hand is running. */
    startRetention: (): Promise<void> =>
      withClient(RETENTION_DEADLINE_MS, async (workflow) => {
        const workflowId = `${retentionScheduleId(taskQueue)}/by-hand`;
        const options = { taskQueue, workflowId, args: [], workflowExecutionTimeout: RETENTION_LIMIT };
        await workflow.start('applyRetention', options).catch((error: unknown) => {
          if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
          throw new Refused('conflict', 'A removal that was started by hand is still under way.');
        });
      }),
    /** What to do about search attributes that the namespace lacks; null: it has all. */
    whatIsMissing: (deadlineMs: number): Promise<string | null> =>
      connected(deadlineMs, (connection) => lackOfSearchAttributes(connection, namespace)),
    describeDeployment: (deadlineMs?: number) => aboutBuilds(read, deadlineMs),
    /** Makes a build current: announces it (a ramp of 0 %), waits until workers of others ask for no first tasks (20 s), changes over. */
    setCurrent: (buildId: string): Promise<void> =>
      aboutBuilds(async (ask) => {
        const { current, ramping } = await read(ask);
        if (current === buildId) {
          if (ramping !== null) await setRamp(ask, null, 0);
          return;
        }
        await setRamp(ask, buildId, 0);
        await sleep(settleMs);
        await change(ask, (service) => service.setWorkerDeploymentCurrentVersion({ ...named, buildId }));
      }),
    /** Gives a build a share of the deliveries, 0 to 100 %; null ends the ramp. */
    ramp: (buildId: string | null, percent: number): Promise<void> =>
      aboutBuilds(async (ask) => void (await setRamp(ask, buildId, percent))),
  };
}

const handleOf = (workflow: Client['workflow'], { notificationId, generation }: NotificationRef) =>
  workflow.getHandle(deliveryWorkflowId(notificationId, generation));

/** @returns whether there was such a workflow */
async function known(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

export type TemporalOrders = ReturnType<typeof temporalOrders>;
