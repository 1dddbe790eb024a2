import { defineSearchAttributeKey } from '@temporalio/common';
import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import type { ClaimedNotification } from '../db/notifications/claim';
import type { deliverNotification } from '../workflows';
import type { BuildWatch } from './build-watch';
import type { FastPath, FastPathAnswer } from './fast-path';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { withTimeout } from '../timing/timeout';
import { deliveryWorkflowId } from '../workflows/names';

/** A client retries for many seconds while Temporal is away; the row is safe in Postgres, so there is no need to. */
const START_MS = 1_500;

const keyword = (name: keyof typeof SEARCH_ATTRIBUTE, value: string) => ({
  key: defineSearchAttributeKey(SEARCH_ATTRIBUTE[name], 'KEYWORD'),
  value,
});

interface DeliveryStarterDeps {
  /** On the worker's own connection: then the first workflow task needs no polling (eager start). */
  readonly client: Client;
  readonly taskQueue: string;
  /** Waits before each attempt of an event of this type, in milliseconds. */
  readonly ladderFor: (eventType: string) => readonly number[];
  /** Of this process, which hosts the worker. */
  readonly fastPath: Pick<FastPath, 'reserve' | 'cancel'>;
  /** Whether the first workflow task may run here. */
  readonly build: Pick<BuildWatch, 'eager'>;
  /** A workflow exists for the first time; for metrics. */
  readonly onPath: (path: StartPath) => void;
}

/** As the fast path answers, unless it was not asked: another build may get the first workflow task. */
type StartPath = FastPathAnswer | 'not_eager';

export type StartDelivery = (
  notification: Omit<ClaimedNotification, 'requestId' | 'traceParent' | 'ageMs'>,
) => Promise<void>;

/**
 * Starts the workflow of a claimed notification. That it exists already is as good as having started it.
 * @throws after 1.5 s at the latest, when Temporal cannot be asked.
 */
export function createDeliveryStarter(deps: DeliveryStarterDeps): StartDelivery {
  const { client, taskQueue, ladderFor, fastPath, build, onPath } = deps;
  return async (notification) => {
    const { notificationId, generation, eventType, partnerId, environment, applicationId } = notification;
    const ladderMs = ladderFor(eventType);
    // Asked as late as can be: the answer ages.
    const eager = build.eager();
    const path = choosePath();
    const fast = path === 'fast';
    try {
      const starting = client.withDeadline(Date.now() + START_MS, () =>
        client.workflow.start<typeof deliverNotification>('deliverNotification', {
          workflowId: deliveryWorkflowId(notificationId, generation),
          taskQueue,
          args: [{ notificationId, generation, ladderMs, queue: `${partnerId}/${environment}`, fast }],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          requestEagerStart: eager,
          staticSummary: `${eventType} to ${partnerId}, ${environment}`,
          typedSearchAttributes: [
            keyword('partner', partnerId),
            keyword('environment', environment),
            keyword('eventType', eventType),
            keyword('status', 'sending'),
            ...(applicationId === null ? [] : [keyword('application', applicationId)]),
          ],
        }),
      );
      // The native connection applies its deadline to each of its own retries, and knows no abort signal.
      await withTimeout(starting, START_MS, 'Temporal');
      onPath(path);
    } catch (error) {
      if (fast) fastPath.cancel(notificationId);
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }

    function choosePath(): StartPath {
      if (!eager) return 'not_eager';
      return ladderMs[0] === 0 ? fastPath.reserve(notification) : 'endpoint_not_fast';
    }
  };
}
