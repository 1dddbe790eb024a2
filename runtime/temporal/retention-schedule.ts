import { ScheduleAlreadyRunning, type Client } from '@temporalio/client';
import { withTimeout, startLoop, type Loop } from '../../timing/timing';

const ROUND_MS = 15_000;
const RETRY_MS = 60_000;

/** A run that makes no progress ends before the next one, which continues at its position. */
export const RETENTION_LIMIT = '23 hours';

export const retentionScheduleId = (taskQueue: string) => `retention/${taskQueue}`;

/** Creates or updates the schedule of the retention. A paused one stays so. `off` deletes it. */
async function ensureRetentionSchedule(client: Client, taskQueue: string, at: string): Promise<void> {
  const scheduleId = retentionScheduleId(taskQueue);
  const handle = client.schedule.getHandle(scheduleId);
  if (at === 'off') {
    // Usually there is none, and some servers have no schedules.
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
      // How many days are kept is in the database, and no argument.
      args: [],
      workflowExecutionTimeout: RETENTION_LIMIT,
    },
    // Never two at once. After an outage of up to 12 hours the missed run is made up for.
    policies: { overlap: 'SKIP' as const, catchupWindow: '12 hours' as const },
  };
}

/**
 * Creates or updates the schedule, and tries again every minute until that succeeds.
 * @param at `HH:MM`, UTC; `off`: no schedule
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
