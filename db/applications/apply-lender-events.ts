import { and, asc, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { WriteChange } from '../../domain/application';
import { byOccurrence, judgeEvent, nextToApply } from '../../domain/application-states';
import type { DbOrTransaction } from '../postgres/connect';
import { creditApplications, lenderEvents } from '../schema';
import { insertStatusNotification, type Application } from './notifications';

export type LenderEvent = typeof lenderEvents.$inferSelect;

/**
 * Brings an application into the state that an event names, and stores its notification. Its row must be locked by the
 * transaction.
 */
export async function applyLenderEvent(
  tx: DbOrTransaction,
  before: Application,
  event: LenderEvent,
  write: WriteChange,
): Promise<Application> {
  const [application] = await tx
    .update(creditApplications)
    .set({
      state: event.status,
      stateOccurredAt: event.occurredAt,
      sequence: before.sequence + 1,
      updatedAt: sql`service_now()`,
    })
    .where(eq(creditApplications.applicationId, before.applicationId))
    .returning();
  if (application === undefined) throw new Error(`${before.applicationId} is gone under its own lock`);
  await tx
    .update(lenderEvents)
    .set({
      previousState: before.state,
      sequence: application.sequence,
      appliedAt: application.updatedAt,
      waitsUntil: null,
    })
    .where(eq(lenderEvents.eventNumber, event.eventNumber));
  await insertStatusNotification(tx, application, before.state, { ...event, write });
  return application;
}

/** An event that was applied, and the state that the application was in. */
interface Move {
  readonly from: Application['state'];
  readonly to: Application['state'];
}

/**
 * Applies what waits for an application, for as long as something can be applied, and ends the wait of what can no longer
 * be. The application's row must be locked by the transaction.
 * @param skips whether events whose wait is over are applied without the steps that are missing
 */
export async function settleWaiting(
  tx: DbOrTransaction,
  application: Application,
  { write, skips }: { readonly write: WriteChange; readonly skips: boolean },
): Promise<{ readonly application: Application; readonly moves: readonly Move[] }> {
  const isOver = sql<boolean>`${lenderEvents.waitsUntil} <= service_now()`;
  const rows = await tx
    .select({ event: lenderEvents, isOver })
    .from(lenderEvents)
    .where(and(eq(lenderEvents.applicationId, application.applicationId), isNotNull(lenderEvents.waitsUntil)))
    .orderBy(asc(lenderEvents.eventNumber));
  const over = new Set(rows.filter((row) => skips && row.isOver).map(({ event }) => event));
  let waiting = rows.map(({ event }) => event).toSorted(byOccurrence);
  let current = application;
  const moves: Move[] = [];
  for (;;) {
    const next = nextToApply(current, waiting, (event) => over.has(event));
    if (next === null) break;
    waiting = waiting.filter((event) => event !== next);
    moves.push({ from: current.state, to: next.status });
    current = await applyLenderEvent(tx, current, next, write);
  }
  const ended = waiting.filter((event) => judgeEvent(current, event) !== 'waiting');
  if (ended.length > 0) {
    const numbers = ended.map(({ eventNumber }) => eventNumber);
    await tx.update(lenderEvents).set({ waitsUntil: null }).where(inArray(lenderEvents.eventNumber, numbers));
  }
  return { application: current, moves };
}
