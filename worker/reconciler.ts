import { WorkflowNotFoundError, type Client, type WorkflowExecutionStatusName } from '@temporalio/client';
import type { NotificationRef } from '../db/notifications/notification';
import { startLoop, type Loop, withTimeout } from '../timing/timing';
import { deliveryWorkflowId } from '../workflows/names';

/** A workflow that is not described in this time is asked for again in the next round. */
const DESCRIBE_MS = 2_000;
/** Workflows in one round. A round every 10 s costs Temporal next to nothing. */
const PER_ROUND = 50;

interface ReconcilerDeps {
  readonly client: Client;
  readonly claimUnchecked: (options: { limit: number; olderThanMs: number }) => Promise<NotificationRef[]>;
  /** Queues it again under a new generation, so that a workflow that still runs is superseded. */
  readonly restart: (notification: NotificationRef) => Promise<boolean>;
  readonly end: (ref: NotificationRef, state: 'failed' | 'cancelled', reason: string) => Promise<void>;
  readonly onFound: (notification: NotificationRef, what: string) => void;
  readonly onError: (error: unknown, what: string) => void;
  readonly everyMs: number;
  /** A started notification is compared when its last step is this old, in milliseconds. */
  readonly olderThanMs: number;
}

type Standing = 'running' | 'missing' | 'terminated' | 'cancelled' | 'closed';

const STANDINGS: Partial<Record<WorkflowExecutionStatusName, Standing>> = {
  RUNNING: 'running',
  PAUSED: 'running',
  TERMINATED: 'terminated',
  CANCELLED: 'cancelled',
};

/**
 * Compares rows with Temporal. Either store may have been restored from a backup, and operators may end
 * workflows on Temporal's page.
 */
export function startReconciler(deps: ReconcilerDeps): Loop {
  const { everyMs, olderThanMs } = deps;
  return startLoop({
    async round(stopped) {
      let restarted = 0;
      for (const one of await deps.claimUnchecked({ limit: PER_ROUND, olderThanMs })) {
        if (stopped()) return;
        if (await reconcile(deps, one)) restarted += 1;
      }
      // Temporal has probably lost its database, and every delivery under way needs a new workflow.
      if (restarted === PER_ROUND) return 'again';
    },
    everyMs,
    onError: (error) => deps.onError(error, 'notifications could not be held against Temporal'),
  });
}

async function reconcile(deps: ReconcilerDeps, notification: NotificationRef): Promise<boolean> {
  const standing = await standingOf(deps.client, notification);
  switch (standing) {
    case 'running':
      return false;
    case 'terminated':
      deps.onFound(notification, 'its workflow was terminated');
      await deps.end(notification, 'failed', 'workflow_terminated');
      return false;
    case 'cancelled':
      deps.onFound(notification, 'its workflow was cancelled');
      await deps.end(notification, 'cancelled', 'workflow_cancelled');
      return false;
    case 'missing':
    case 'closed':
      // One of the two stores has lost something. The event is sent again, and counted once.
      if (!(await deps.restart(notification))) return false;
      deps.onFound(notification, standing === 'missing' ? 'it had no workflow' : 'its workflow had ended');
      return true;
  }
}

async function standingOf(client: Client, { notificationId, generation }: NotificationRef) {
  const handle = client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  try {
    const described = client.withDeadline(Date.now() + DESCRIBE_MS, () => handle.describe());
    const { status } = await withTimeout(described, DESCRIBE_MS, 'Temporal');
    return STANDINGS[status.name] ?? 'closed';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'missing';
    throw error;
  }
}
