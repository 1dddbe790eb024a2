import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow';
import type { RetentionActivities } from '../activities/remove-expired';
import { RETENTION_KINDS, type RetentionDays, type RetentionKind } from '../domain/retention';

/** A month whose table is in use is tried again so often, and else tomorrow. */
const TRIES = 5;
const BUSY_PAUSE = '30 seconds';

/** How many rows of each kind went, or lost their payload. */
export type RetentionTotals = Readonly<Partial<Record<RetentionKind, number>>>;

export interface ApplyRetentionInput {
  readonly days: RetentionDays;
  /** Where the run before this one stands; not given by the schedule. */
  readonly from?: { readonly kind: RetentionKind; readonly cursor: string | null };
  readonly totals?: RetentionTotals;
}

/** Removes what is past its time, kind by kind, in steps of about twenty seconds. The schedule `retention` starts it. */
export async function applyRetention(input: ApplyRetentionInput): Promise<RetentionTotals> {
  const { days, from } = input;
  const { removeExpired } = proxyActivities<RetentionActivities>({
    startToCloseTimeout: '3 minutes',
    heartbeatTimeout: '30 seconds',
    retry: { initialInterval: '5 seconds', backoffCoefficient: 2, maximumInterval: '5 minutes' },
  });
  const totals: Partial<Record<RetentionKind, number>> = { ...input.totals };
  const kinds = RETENTION_KINDS.slice(from === undefined ? 0 : RETENTION_KINDS.indexOf(from.kind));
  for (const kind of kinds) {
    let cursor = kind === from?.kind ? from.cursor : null;
    for (let tries = 1; ;) {
      if (workflowInfo().continueAsNewSuggested) {
        return continueAsNew<typeof applyRetention>({ days, from: { kind, cursor }, totals });
      }
      const summary = `${kind} older than ${days[kind]} days`;
      const task = { kind, days: days[kind], cursor };
      const step = await removeExpired.executeWithOptions({ summary }, [task]);
      totals[kind] = (totals[kind] ?? 0) + step.removed;
      setCurrentDetails(describe(totals));
      if (step.more) {
        ({ cursor } = step);
        continue;
      }
      if (step.busy.length === 0 || tries === TRIES) break;
      tries += 1;
      await sleep(BUSY_PAUSE, { summary: `in use: ${step.busy.join(', ')}` });
    }
  }
  return totals;
}

/** Markdown. */
const describe = (totals: RetentionTotals) =>
  Object.entries(totals)
    .map(([kind, rows]) => `- ${kind}: ${rows}`)
    .join('\n');
