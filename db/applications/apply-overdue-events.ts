import { eq, sql } from 'drizzle-orm';
import type { WriteChange } from '../../domain/application';
import { missingSteps } from '../../domain/application-states';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { creditApplications } from '../schema';
import { settleWaiting } from './apply-lender-events';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';

/** Applications for which an event has waited long enough, the longest overdue first. */
export async function overdueApplications(db: DbOrTransaction, limit: number): Promise<string[]> {
  const rows = await db.execute<{ id: string }>(sql`
    select application_id as id from lender_events
    where waits_until <= service_now()
    group by application_id order by min(waits_until) limit ${limit}`);
  return rows.map(({ id }) => id);
}

/**
 * Applies the events of an application whose wait is over without the steps that are missing, in one transaction under the
 * lock of its row, and writes down what was missing. Nobody waits for the lock: while a lender's event is being recorded, or
 * another worker does the same, it is left for the next round.
 * @returns what operators should know, which has been written down; null when there was nothing to apply
 */
export async function applyOverdueEvents(
  db: Db,
  applicationId: string,
  write: WriteChange,
): Promise<OperatorEvent | null> {
  return db.transaction(async (tx) => {
    const [before] = await tx
      .select()
      .from(creditApplications)
      .where(eq(creditApplications.applicationId, applicationId))
      .for('update', { skipLocked: true });
    if (before === undefined) return null;
    const { moves } = await settleWaiting(tx, before, { write, skips: true });
    const missing = new Set(moves.flatMap(({ from, to }) => missingSteps(from, to)));
    if (missing.size === 0) return null;
    const { partnerId, environment, lender, lenderReference, state } = before;
    const event: OperatorEvent = {
      kind: 'lender_steps_missing',
      partnerId,
      environment,
      endpointId: null,
      details: {
        application_id: applicationId,
        lender,
        lender_reference: lenderReference,
        state_before: state,
        missing: [...missing],
        applied: moves.map(({ to }) => to),
      },
    };
    await appendOperatorEvents(tx, [event]);
    return event;
  });
}
