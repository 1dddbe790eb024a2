import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Database } from '../db/postgres/connect';
import { applyRetentionStep, type RetentionStep } from '../db/retention/apply';
import {
  readRetentionTask,
  RetentionRefused,
  type RetentionDays,
  type RetentionTask,
} from '../domain/retention';
import type { ActivityDeps } from './deps';
import { withHeartbeat } from './heartbeat';

/** Far below the activity's timeout; a worker that stops waits for no longer than this. */
const STEP_MS = 20_000;

interface RetentionDeps extends Pick<ActivityDeps, 'warn'> {
  /** A connection of its own, for statements that may take a minute: deliveries have a pool with a short timeout. */
  readonly connect: () => Database;
  /** The worker's settings. Nothing that a workflow is told may remove more. */
  readonly days: RetentionDays;
}

/** Removes some of what is past its time: about twenty seconds of work. */
export function createRetentionActivities({ connect, days, warn }: RetentionDeps) {
  return {
    /** @throws ApplicationFailure `retention_refused`, which is not repeated, for a task that is not the workflow's own. */
    removeExpired: (given: RetentionTask): Promise<RetentionStep> =>
      withHeartbeat(async () => {
        const { cancellationSignal } = Context.current();
        const until = performance.now() + STEP_MS;
        const database = connect();
        try {
          const task = readRetentionTask(given);
          return await applyRetentionStep(
            database.db,
            { ...task, days: days[task.kind] },
            {
              actor: 'retention',
              enough: () => performance.now() > until || cancellationSignal.aborted,
            },
          );
        } catch (error) {
          if (error instanceof RetentionRefused) throw refused(error);
          throw error;
        } finally {
          await database.close();
        }
      }),
  };

  function refused({ message }: RetentionRefused): ApplicationFailure {
    const { workflowId, runId } = Context.current().info.workflowExecution ?? {};
    warn(
      { workflowId, runId, why: message },
      'the retention refused a task; nothing was removed: who else starts workflows on this Temporal?',
    );
    return ApplicationFailure.nonRetryable(message, 'retention_refused');
  }
}

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;
