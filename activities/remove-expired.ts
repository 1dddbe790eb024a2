import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { appendOperatorEvents, type OperatorEvent } from '../db/audit/operator-events';
import type { Database } from '../db/postgres/connect';
import { applyRetentionStep, type RetentionStep } from '../db/retention/remove';
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
import type { AttemptDeps } from './attempt';

/** Far below the timeout of the activity, 3 minutes. A stopping worker waits for one step. */
const STEP_MS = 20_000;

export interface RetentionDeps extends Pick<AttemptDeps, 'warn'> {
  /** Opens a pool for statements that may take a minute; other pools have a short timeout. */
  readonly connectForRetention: () => Database;
  readonly onRemovedMuch: (kind: RetentionKind, rows: number) => void;
}

export function createRetentionActivities(deps: RetentionDeps) {
  const { connectForRetention, warn, onRemovedMuch } = deps;

  /**
   * @throws ApplicationFailure `retention_refused`, which is not repeated, in place of
   * RetentionRefused.
   */
  async function onDatabase<T>(work: (db: Database['db']) => Promise<T>): Promise<T> {
    const database = connectForRetention();
    try {
      return await work(database.db);
    } catch (error) {
      if (!(error instanceof RetentionRefused)) throw error;
      const { workflowId, runId } = Context.current().info.workflowExecution ?? {};
      warn(
        { workflowId, runId, why: error.message },
        'the retention refused a task; nothing was removed: who else starts workflows on this Temporal?',
      );
      throw ApplicationFailure.nonRetryable(error.message, 'retention_refused');
    } finally {
      await database.close();
    }
  }

  return {
    /** @throws ApplicationFailure `retention_refused` for a task that is not the workflow's own. */
    removeExpired: (given: RetentionTask): Promise<RetentionStep> =>
      onDatabase(async (db) => {
        const { cancellationSignal } = Context.current();
        const until = performance.now() + STEP_MS;
        return applyRetentionStep(db, readRetentionTask(given), {
          enough: () => performance.now() > until || cancellationSignal.aborted,
        });
      }),

    /**
     * Reports a run that removed more than usual.
     * @throws ApplicationFailure `retention_refused` for an argument that is no removal.
     */
    reportRemoval: (given: Removal): Promise<void> =>
      onDatabase(async (db) => {
        const removal = readRemoval(given);
        const beside = beyondUsual(removal);
        if (beside === 0) return;
        const event = muchRemoved(removal);
        await appendOperatorEvents(db, [event]);
        onRemovedMuch(removal.kind, beside);
        warn({ kind: event.kind, ...event.details }, describeOperatorEvent(event.kind, event.details));
      }),
  };
}

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

function muchRemoved({ kind, removed }: Removal): OperatorEvent {
  const periods = Object.keys(removed).toSorted();
  const rows = Object.values(removed).reduce((sum, one) => sum + one, 0);
  const details = { what: kind, rows, periods: periods.length, first: periods.at(0), last: periods.at(-1) };
  return { kind: 'retention_removed_much', partnerId: null, environment: null, endpointId: null, details };
}
