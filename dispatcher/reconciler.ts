import { WorkflowNotFoundError, type Client, type WorkflowExecutionStatusName } from '@temporalio/client';
import type { UncheckedNotification } from '../db/notifications/claim';
import { startLoop, type Loop } from '../timing/loop';
import { inTime } from './in-time';
import { deliveryWorkflowId } from '../workflows/names';

/** A describe answers in milliseconds; one that does not is asked again in the next round. */
const DESCRIBE_DEADLINE_MS = 2_000;
/** Describes per round: a round of 10 s then costs Temporal next to nothing. */
const PER_ROUND = 50;

interface ReconcilerDeps {
  readonly client: Client;
  readonly claimUnchecked: (options: {
    limit: number;
    olderThanMs: number;
  }) => Promise<UncheckedNotification[]>;
  /** Pending again, under a new generation: an old workflow that still runs somewhere is told that it is over. */
  readonly restart: (notification: UncheckedNotification) => Promise<boolean>;
  readonly end: (
    notification: UncheckedNotification,
    state: 'failed' | 'cancelled',
    reason: string,
  ) => Promise<void>;
  readonly onFound: (notification: UncheckedNotification, what: string) => void;
  readonly onError: (error: unknown, what: string) => void;
  /** Pause between rounds, in milliseconds. */
  readonly everyMs: number;
  /** How long a started notification is left alone before Temporal is asked about it. */
  readonly olderThanMs: number;
}

const STANDINGS: Partial<Record<WorkflowExecutionStatusName, Standing>> = {
  RUNNING: 'running',
  PAUSED: 'running',
  TERMINATED: 'terminated',
  CANCELLED: 'cancelled',
};

/** What Temporal knows of a delivery whose row says that it is under way. */
type Standing = 'running' | 'missing' | 'terminated' | 'cancelled' | 'closed';

/**
 * Holds the rows against Temporal: either store may have been restored from a backup, or lost, and operators may end
 * workflows in Temporal's own UI.
 */
export function startReconciler(deps: ReconcilerDeps): Loop {
  const { everyMs, olderThanMs } = deps;
  return startLoop({
    round: async (stopped) => {
      for (const one of await deps.claimUnchecked({ limit: PER_ROUND, olderThanMs })) {
        if (!stopped()) await reconcile(deps, one);
      }
    },
    everyMs,
    onError: (error) => deps.onError(error, 'notifications could not be held against Temporal'),
  });
}

async function reconcile(deps: ReconcilerDeps, notification: UncheckedNotification): Promise<void> {
  const standing = await standingOf(deps.client, notification);
  switch (standing) {
    case 'running':
      return;
    case 'terminated':
      deps.onFound(notification, 'its workflow was terminated');
      return deps.end(notification, 'failed', 'workflow_terminated');
    case 'cancelled':
      deps.onFound(notification, 'its workflow was cancelled');
      return deps.end(notification, 'cancelled', 'workflow_cancelled');
    case 'missing':
    case 'closed':
      // The row would know if it had ended: one of the two stores has lost something. Sent again, counted once.
      if (await deps.restart(notification)) {
        deps.onFound(notification, standing === 'missing' ? 'it had no workflow' : 'its workflow had ended');
      }
  }
}

async function standingOf(
  client: Client,
  { notificationId, generation }: UncheckedNotification,
): Promise<Standing> {
  const handle = client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  try {
    const { status } = await inTime(client, DESCRIBE_DEADLINE_MS, () => handle.describe());
    return STANDINGS[status.name] ?? 'closed';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'missing';
    throw error;
  }
}
