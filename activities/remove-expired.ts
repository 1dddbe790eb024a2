import { Context } from '@temporalio/activity';
import type { Database } from '../db/postgres/connect';
import { applyRetentionStep, type RetentionStep, type RetentionTask } from '../db/retention/apply';
import { withHeartbeat } from './heartbeat';

/** Far below the activity's timeout; a worker that stops waits for no longer than this. */
const STEP_MS = 20_000;

export interface RetentionDeps {
  /** A connection of its own, for statements that may take a minute: deliveries have a pool with a short timeout. */
  readonly connect: () => Database;
}

/** Removes some of what is past its time: about twenty seconds of work. */
export function createRetentionActivities({ connect }: RetentionDeps) {
  return {
    removeExpired: (task: RetentionTask): Promise<RetentionStep> =>
      withHeartbeat(async () => {
        const { cancellationSignal } = Context.current();
        const until = performance.now() + STEP_MS;
        const database = connect();
        try {
          return await applyRetentionStep(database.db, task, {
            actor: 'retention',
            enough: () => performance.now() > until || cancellationSignal.aborted,
          });
        } finally {
          await database.close();
        }
      }),
  };
}

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;
