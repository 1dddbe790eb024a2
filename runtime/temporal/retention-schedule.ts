import { ScheduleAlreadyRunning, type Client } from '@temporalio/client';
import { withTimeout } from '../../timing/timeout';
import { startLoop, type Loop } from '../../timing/loop';

const ROUND_MS = 15_000;
const RETRY_MS = 60_000;

/** A run that cannot get on is given up before the next is due; that takes up where it stood. */
export const RETENTION_LIMIT = '23 hours';

export const retentionScheduleId = (taskQueue: string) => `retention/${taskQueue}`;

/**
 * Creates the schedule of the retention, or brings it up to these settings; one that an operator has paused stays so.
 * With `off` it is deleted.
 */
async function ensureRetentionSchedule(client: Client, taskQueue: string, at: string): Promise<void> {
  const scheduleId = retentionScheduleId(taskQueue);
  const handle = client.schedule.getHandle(scheduleId);
  if (at === 'off') {
    // Most often there is none, and some servers know no schedules.
    await handle.delete().catch(() => undefined);
    return;
  }
  const options = scheduleOptions(taskQueue, at);
  try {
    await client.schedule.create({ scheduleId, ...options });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await handle.update(({ state }) => ({ ...options, state }));
  }
}

function scheduleOptions(taskQueue: string, at: string) {
  const [hour, minute] = at.split(':').map(Number);
  return {
    spec: { calendars: [{ hour: hour ?? 0, minute: minute ?? 0, comment: 'daily, UTC' }] },
    action: {
      type: 'startWorkflow' as const,
      workflowType: 'applyRetention',
      workflowId: retentionScheduleId(taskQueue),
      taskQueue,
      // How many days are kept is in the database: nothing that a workflow is told.
      args: [],
      workflowExecutionTimeout: RETENTION_LIMIT,
    },
    // Never two at once. After an outage the last one that was missed is made up for, if it is not too long ago.
    policies: { overlap: 'SKIP' as const, catchupWindow: '12 hours' as const },
  };
}

/**
 * Does so now, and again every minute until it has worked.
 * @param at `HH:MM`, UTC; `off`: never.
 */
export function keepRetentionSchedule(
  client: Client,
  taskQueue: string,
  at: string,
  onError: (error: unknown) => void,
): Loop {
  return startLoop({
    round: async () => {
      const ensured = client.withDeadline(Date.now() + ROUND_MS, () =>
        ensureRetentionSchedule(client, taskQueue, at),
      );
      await withTimeout(ensured, ROUND_MS, 'Temporal');
      return 'done';
    },
    everyMs: RETRY_MS,
    onError,
  });
}
