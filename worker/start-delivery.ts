import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { ClaimedNotification } from '../db/notifications/claim';
import { reasonText } from '../domain/lateness';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { startLoop, withTimeout } from '../timing/timing';
import type { deliverNotification } from '../workflows';
import { deliveryWorkflowId } from '../workflows/names';
import type { WorkerOptions } from './options';
import type { FastPath, FastPathAnswer } from './fast-path';

/** Without an answer for so long the row, which is safe in Postgres, is claimed again. */
const START_MS = 1_500;
/**
 * The call itself is given up after this. A late answer brings the first workflow task, which Temporal would give to nobody else
 * for ten seconds.
 */
const LATE_START_MS = 4_000;
/** How often Temporal is asked for the current build, and the timeout of that call. */
const WATCH_EVERY_MS = 2_000;
const WATCH_MS = 1_500;
/** An answer is valid for this long, so that two requests may fail in between. */
const ANSWER_VALID_MS = 5_000;

interface DeliveryStarterDeps extends Pick<WorkerOptions, 'taskQueue'> {
  /** Uses the worker's own connection, so that the first workflow task needs no polling (eager start). */
  readonly client: Client;
  readonly fastPath: Pick<FastPath, 'reserve' | 'cancel'>;
  readonly build: Pick<BuildWatch, 'eager'>;
  readonly onPath: (path: StartPath) => void;
}

/** `not_eager`: another build may get the first workflow task, so the fast path was not asked. */
type StartPath = FastPathAnswer | 'not_eager';

export type StartDelivery = (
  notification: Omit<ClaimedNotification, 'requestId' | 'traceParent' | 'ageMs'> & {
    readonly waits?: boolean;
  },
) => Promise<void>;

/**
 * Starts the workflow of a claimed notification. An existing workflow counts as started.
 * @throws when Temporal does not answer in 1.5 s
 */
export function createDeliveryStarter(deps: DeliveryStarterDeps): StartDelivery {
  const { client, taskQueue, fastPath, build, onPath } = deps;
  return async (notification) => {
    const { notificationId, generation, eventType, partnerId, environment, applicationId } = notification;
    const { interruptions = [] } = notification;
    const eager = build.eager();
    const path: StartPath = eager ? fastPath.reserve(notification) : 'not_eager';
    const starting = client
      .withDeadline(Date.now() + LATE_START_MS, () =>
        client.workflow.start<typeof deliverNotification>('deliverNotification', {
          workflowId: deliveryWorkflowId(notificationId, generation),
          taskQueue,
          args: [{ notificationId, generation }],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          requestEagerStart: eager,
          staticSummary: `${eventType} to ${partnerId}, ${environment}`,
          ...(interruptions.length > 0 && {
            staticDetails: ['Before this:', '', ...interruptions.map((one) => `- ${reasonText(one)}`)].join(
              '\n',
            ),
          }),
          typedSearchAttributes: [
            keyword('partner', partnerId),
            keyword('environment', environment),
            keyword('eventType', eventType),
            keyword('status', 'sending'),
            ...(applicationId === null ? [] : [keyword('application', applicationId)]),
          ],
        }),
      )
      .then(
        () => onPath(path),
        (error: unknown) => {
          if (path === 'fast') fastPath.cancel(notificationId);
          if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
        },
      );
    // The connection applies a deadline to each of its retries, and has no abort signal.
    await withTimeout(starting, START_MS, 'Temporal');
  };
}

const keyword = (name: keyof typeof SEARCH_ATTRIBUTE, value: string) => ({
  key: defineSearchAttributeKey(SEARCH_ATTRIBUTE[name], 'KEYWORD'),
  value,
});

interface BuildWatchDeps extends Pick<WorkerOptions, 'taskQueue' | 'build'> {
  readonly client: Client;
  readonly monotonicMs: () => number;
  readonly onError: (error: unknown) => void;
}

export type BuildWatch = ReturnType<typeof watchBuild>;

/** Asks Temporal every two seconds which build gets the tasks of this queue. */
export function watchBuild({ client, taskQueue, build, monotonicMs, onError }: BuildWatchDeps) {
  const listeners = new Set<(current: boolean) => void>();
  let answer: { readonly current: boolean; readonly alone: boolean; readonly askedAt: number } | null = null;
  let failing = false;

  async function ask(): Promise<void> {
    const askedAt = monotonicMs();
    const asking = client.withDeadline(Date.now() + WATCH_MS, () =>
      client.workflowService.describeTaskQueue({
        namespace: client.options.namespace,
        taskQueue: { name: taskQueue },
      }),
    );
    const { versioningInfo: routing } = await withTimeout(asking, WATCH_MS, 'Temporal');
    const named = routing?.currentDeploymentVersion;
    const current =
      build === null
        ? !named?.buildId
        : named?.buildId === build.buildId && named.deploymentName === build.deploymentName;
    const alone = !routing?.rampingDeploymentVersion && !routing?.rampingVersionPercentage;
    const changed = answer?.current !== current;
    answer = { current, alone, askedAt };
    failing = false;
    if (changed) for (const listener of listeners) listener(current);
  }

  const loop = startLoop({
    round: ask,
    everyMs: WATCH_EVERY_MS,
    onError(error) {
      if (!failing) onError(error);
      failing = true;
    },
  });

  return {
    /**
     * Whether deliveries start here, by the last answer of any age: this must be the current build.
     * Before an answer, true for a build without versions.
     */
    current: (): boolean => answer?.current ?? build === null,
    /**
     * Whether an eager start is allowed: Temporal does not check builds for it, so no other build may
     * be announced as of the last five seconds.
     */
    eager: (): boolean =>
      answer !== null && answer.current && answer.alone && monotonicMs() - answer.askedAt < ANSWER_VALID_MS,
    onChange: (listener: (current: boolean) => void): void => void listeners.add(listener),
    stop: (): Promise<void> => loop.stop(),
  };
}
