import { WorkflowNotFoundError, type Client, type WorkflowExecutionStatusName } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RestartedNotification, UncheckedNotification } from '../db/notifications/claim';
import type { NotificationRef } from '../db/notifications/notification';
import { isDataFault } from '../db/refused';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { startLoop, type Loop, withTimeout } from '../timing/timing';
import { deliveryWorkflowId, WAKE_SIGNAL } from '../workflows/names';
import type { StartDelivery } from './start-delivery';

/** Longest wait for an answer of Temporal, in milliseconds. */
const CALL_MS = 2_000;
/** Workflows in one round. A round every 10 s costs Temporal next to nothing. */
const PER_ROUND = 50;
/** Workflows that are looked for, and started again, at once. */
const AT_ONCE = 2;
/** The next are started again when fewer restarted workflows have not begun; a round waits for this no longer. */
const MOST_UNOPENED = 4;
const OPENED_WITHIN_MS = 10_000;
const ASK_EVERY_MS = 100;
/**
 * A workflow task that was tried so often ends on no worker of ours: one took it and does not answer, or
 * its history cannot be continued.
 */
const STUCK_AT_ATTEMPT = 6;

interface ReconcilerDeps {
  readonly client: Client;
  readonly claimUnchecked: (options: {
    limit: number;
    olderThanMs: number;
  }) => Promise<UncheckedNotification[]>;
  /** Gives it a new generation, so that a workflow that still runs is superseded. */
  readonly restart: (notification: NotificationRef) => Promise<RestartedNotification | null>;
  readonly start: StartDelivery;
  /** Those of these whose workflow has not read its row yet. */
  readonly unopened: (restarted: readonly NotificationRef[]) => Promise<NotificationRef[]>;
  readonly end: (ref: NotificationRef, state: 'failed' | 'cancelled', reason: string) => Promise<void>;
  /** Many workflows may be lost. */
  readonly noteLoss: () => Promise<void>;
  /** Whether some have not been compared since the last loss. */
  readonly repairsLoss: () => Promise<boolean>;
  readonly onFound: (notification: NotificationRef, what: string) => void;
  readonly onError: (error: unknown, what: string) => void;
  readonly everyMs: number;
  /** A started notification is compared when its last step is this old, in milliseconds. */
  readonly olderThanMs: number;
}

const STATUS = defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD');

type Standing = 'running' | 'stuck' | 'missing' | 'terminated' | 'cancelled' | 'closed';

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
  let unopened: NotificationRef[] = [];
  return startLoop({
    async round(stopped) {
      let noted = await deps.repairsLoss();
      let woken = 0;
      let waitedMs = 0;
      const old = await deps.claimUnchecked({ limit: PER_ROUND, olderThanMs });
      for (let at = 0; at < old.length && !stopped(); at += AT_ONCE) {
        const some = await Promise.all(old.slice(at, at + AT_ONCE).map((one) => reconcile(deps, one)));
        const begun = some.filter((one) => one !== null && one !== 'woken');
        woken += some.filter((one) => one === 'woken').length;
        if (begun.length > 0 && old.length === PER_ROUND && !noted) {
          await deps.noteLoss();
          noted = true;
        }
        unopened.push(...begun);
        // First attempts of new events must not be queued behind many of these in Temporal.
        while (unopened.length >= MOST_UNOPENED && !stopped() && waitedMs < OPENED_WITHIN_MS) {
          await sleep(ASK_EVERY_MS);
          waitedMs += ASK_EVERY_MS;
          unopened = await deps.unopened(unopened);
        }
      }
      // Temporal may have lost its database, or wakes while it was away: all are compared without a pause,
      // until each has been once.
      if (old.length === PER_ROUND && (woken > 0 || (await deps.repairsLoss()))) return 'again';
    },
    everyMs,
    onError: (error) => deps.onError(error, 'notifications could not be held against Temporal'),
  });
}

/** @returns what was started again, or `woken`: it does not know its row */
async function reconcile(deps: ReconcilerDeps, notification: UncheckedNotification) {
  const { standing, shown } = await standingOf(deps.client, notification);
  switch (standing) {
    case 'running':
      if (!notification.ordered && !isForgotten(shown, notification)) return null;
      await wake(deps.client, notification);
      return 'woken' as const;
    case 'terminated':
      deps.onFound(notification, 'its workflow was terminated');
      await deps.end(notification, 'failed', 'workflow_terminated');
      return null;
    case 'cancelled':
      deps.onFound(notification, 'its workflow was cancelled');
      await deps.end(notification, 'cancelled', 'workflow_cancelled');
      return null;
    case 'missing':
    case 'closed':
    case 'stuck': {
      // One of the two stores has lost something, or no worker can go on. The event is sent again, and counted
      // once. It does not pass the dispatcher: that would let new events of its endpoint wait, and most of
      // these only continue a wait.
      const restarted = await deps.restart(notification).catch((error: unknown) => {
        if (!isDataFault(error)) throw error;
        deps.onError(error, 'a notification has figures that cannot be: it ends as poison');
        return 'poison' as const;
      });
      if (restarted === 'poison') await deps.end(notification, 'failed', 'poison');
      if (restarted === null || restarted === 'poison') return null;
      deps.onFound(notification, FOUND[standing]);
      await deps.start(restarted);
      if (standing === 'stuck') await terminate(deps.client, notification);
      return restarted;
    }
  }
}

/**
 * Whether it waits for what its row does not know, because the database was restored: for the end of a pause, without a timer,
 * or for a second attempt, for a day perhaps, with a slot of its endpoint.
 */
const isForgotten = (shown: string | undefined, { paused, attempted }: UncheckedNotification) =>
  shown === 'paused' ? !paused : shown === 'retrying' && !attempted;

const FOUND = {
  missing: 'it had no workflow',
  closed: 'its workflow had ended',
  stuck: 'no worker could continue its workflow',
};

/** The generation after it is under way, so this one would find its row superseded. */
async function terminate(client: Client, { notificationId, generation }: NotificationRef): Promise<void> {
  const handle = client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  await inTime(client, () => handle.terminate('superseded'));
}

async function wake(client: Client, { notificationId, generation }: NotificationRef): Promise<void> {
  const handle = client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  await inTime(client, () => handle.signal(WAKE_SIGNAL));
}

const inTime = <T>(client: Client, call: () => Promise<T>): Promise<T> =>
  withTimeout(client.withDeadline(Date.now() + CALL_MS, call), CALL_MS, 'Temporal');

async function standingOf(
  client: Client,
  { notificationId, generation }: NotificationRef,
): Promise<{ readonly standing: Standing; readonly shown?: string | undefined }> {
  const handle = client.workflow.getHandle(deliveryWorkflowId(notificationId, generation));
  try {
    const { status, raw, typedSearchAttributes } = await inTime(client, () => handle.describe());
    const standing = STANDINGS[status.name] ?? 'closed';
    const attempt = raw.pendingWorkflowTask?.attempt ?? 0;
    return standing === 'running' && attempt >= STUCK_AT_ATTEMPT
      ? { standing: 'stuck' }
      : { standing, shown: typedSearchAttributes.get(STATUS) };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { standing: 'missing' };
    throw error;
  }
}
