import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { appendOperatorEvents, type OperatorEvent } from '../db/audit/operator-events';
import type { Database } from '../db/postgres/connect';
import { applyRetentionStep, type RetentionStep } from '../db/retention/apply';
import { describeOperatorEvent } from '../domain/operator-event';
import {
  beyondUsual,
  readRemoval,
  readRetentionTask,
  RetentionRefused,
  type Removal,
  type RetentionKind,
  type RetentionTask,
} from '../domain/retention';
import type { ActivityDeps } from './deps';
import { withHeartbeat } from './heartbeat';

/** Far below the activity's timeout; a worker that stops waits for no longer than this. */
const STEP_MS = 20_000;

interface RetentionDeps extends Pick<ActivityDeps, 'warn'> {
  /** A connection of its own, for statements that may take a minute: deliveries have a pool with a short timeout. */
  readonly connect: () => Database;
  /** A run removed more than what comes of age in a day: so many rows beside that. */
  readonly onMuch: (kind: RetentionKind, rows: number) => void;
}

/** Removes some of what is past its time: about twenty seconds of work. */
export function createRetentionActivities({ connect, warn, onMuch }: RetentionDeps) {
  return {
    /** @throws ApplicationFailure `retention_refused`, which is not repeated, for a task that is not the workflow's own. */
    removeExpired: (given: RetentionTask): Promise<RetentionStep> =>
      withHeartbeat(async () => {
        const { cancellationSignal } = Context.current();
        const until = performance.now() + STEP_MS;
        const database = connect();
        try {
          const task = readRetentionTask(given);
          return await applyRetentionStep(database.db, task, {
            enough: () => performance.now() > until || cancellationSignal.aborted,
          });
        } catch (error) {
          if (error instanceof RetentionRefused) throw refused(error);
          throw error;
        } finally {
          await database.close();
        }
      }),

    /**
     * Reports a run that removed more than a usual one: an operator event, a metric, a line in the log. Nothing for any other.
     * @throws ApplicationFailure `retention_refused` for what is no removal.
     */
    async reportRemoval(given: Removal): Promise<void> {
      const database = connect();
      try {
        const removal = readRemoval(given);
        const beside = beyondUsual(removal);
        if (beside === 0) return;
        const event = muchRemoved(removal);
        await appendOperatorEvents(database.db, [event]);
        onMuch(removal.kind, beside);
        warn({ kind: event.kind, ...event.details }, describeOperatorEvent(event.kind, event.details));
      } catch (error) {
        if (error instanceof RetentionRefused) throw refused(error);
        throw error;
      } finally {
        await database.close();
      }
    },
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

function muchRemoved({ kind, removed }: Removal): OperatorEvent {
  const periods = Object.keys(removed).toSorted();
  const rows = Object.values(removed).reduce((sum, one) => sum + one, 0);
  const details = { what: kind, rows, periods: periods.length, first: periods.at(0), last: periods.at(-1) };
  return { kind: 'retention_removed_much', partnerId: null, environment: null, endpointId: null, details };
}
