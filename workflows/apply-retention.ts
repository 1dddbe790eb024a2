import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow';
import type { RetentionActivities } from '../activities/remove-expired';
import {
  addRemoved,
  beyondUsual,
  RETENTION_KINDS,
  type RemovedByPeriod,
  type RetentionKind,
  type RetentionTask,
} from '../domain/retention';

/** Tries of a month whose table is in use. After them it waits for the next day's run. */
const TRIES = 5;
const BUSY_PAUSE = '30 seconds';

type RetentionTotals = Partial<Record<RetentionKind, number>>;

/**
 * Removes expired rows, kind by kind, in steps of about twenty seconds. The schedule `retention` starts
 * it. How many days are kept is no argument, but in the database, where only its owner changes it.
 * @param from the position of a long run that continues as a new one, which the activity checks; null
 * or absent: from the beginning
 * @returns the rows removed in this run
 */
export async function applyRetention(from?: RetentionTask | null): Promise<RetentionTotals> {
  const { removeExpired, reportRemoval } = proxyActivities<RetentionActivities>({
    startToCloseTimeout: '3 minutes',
    heartbeatTimeout: '30 seconds',
    retry: { initialInterval: '5 seconds', backoffCoefficient: 2, maximumInterval: '5 minutes' },
  });
  const totals: RetentionTotals = {};
  let removed: RemovedByPeriod = {};
  const report = async (kind: RetentionKind) => {
    if (beyondUsual({ kind, removed }) > 0) await reportRemoval({ kind, removed });
  };
  let task: RetentionTask = from ?? { kind: RETENTION_KINDS[0], cursor: null };
  for (let tries = 1; ;) {
    if (workflowInfo().continueAsNewSuggested) {
      await report(task.kind);
      return continueAsNew<typeof applyRetention>(task);
    }
    const step = await removeExpired(task);
    const { kind } = task;
    totals[kind] = (totals[kind] ?? 0) + step.removed;
    removed = addRemoved(removed, step.byPeriod);
    setCurrentDetails(describe(totals));
    if (step.more) {
      task = { kind, cursor: step.cursor };
      continue;
    }
    if (step.busy.length > 0 && tries < TRIES) {
      tries += 1;
      await sleep(BUSY_PAUSE, { summary: `in use: ${step.busy.join(', ')}` });
      continue;
    }
    await report(kind);
    removed = {};
    const next = RETENTION_KINDS[RETENTION_KINDS.indexOf(kind) + 1];
    if (next === undefined) return totals;
    task = { kind: next, cursor: null };
    tries = 1;
  }
}

const describe = (totals: RetentionTotals) =>
  Object.entries(totals)
    .map(([kind, rows]) => `- ${kind}: ${rows}`)
    .join('\n');
