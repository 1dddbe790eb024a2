import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { judgeStatus, type ApplicationState, type Verdict } from '../../domain/application-states';
import type { WriteChange } from '../../domain/application';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { creditApplications, lenderEvents } from '../schema';
import { insertStatusNotification, type Application } from './notifications';

export type LenderEvent = typeof lenderEvents.$inferSelect;

/** A status as a lender tells it. */
export interface NewLenderEvent {
  readonly applicationId: string;
  /** The lender's own id of the event. */
  readonly lenderEventId: string;
  readonly status: ApplicationState;
  /** When the lender says it happened. */
  readonly occurredAt: Date;
  /** Service key that tells it; null when nobody's key does. */
  readonly serviceKeyId: string | null;
  readonly requestId: string | null;
  /** `traceparent` of the request; none where no traces are made. */
  readonly traceParent?: string | null;
}

export type LenderEventAnswer =
  /** Taken in now, or before with the same content. */
  | { readonly kind: 'recorded'; readonly event: LenderEvent; readonly isNew: boolean }
  /** The lender's event id stands for another event. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'application_not_found' };

/**
 * Takes in what a lender says of an application, and stores a notification for each state that it comes into by that, all
 * in one transaction under the lock of the application's row. What has come early waits, and is applied by the event that
 * makes it possible.
 */
export async function recordLenderEvent(
  db: Db,
  wanted: NewLenderEvent,
  write: WriteChange,
): Promise<LenderEventAnswer> {
  return db.transaction(async (tx) => {
    const application = await lockApplication(tx, wanted.applicationId);
    if (application === null) return { kind: 'application_not_found' };
    const known = await findEvent(tx, application, wanted.lenderEventId);
    if (known !== null) return again(known, wanted);
    const happenedEarlier = wanted.occurredAt < application.stateOccurredAt;
    const verdict = judgeStatus(application.state, wanted.status, happenedEarlier);
    const event = await insertEvent(tx, application, wanted, verdict);
    // The same id was told of another application at the same moment.
    if (event === null) return { kind: 'exists' };
    if (verdict !== 'applied') return { kind: 'recorded', event, isNew: true };
    const after = await applyWaiting(tx, await apply(tx, application, event, write), write);
    const stateAfter = after.state;
    if (stateAfter === event.stateAfter) return { kind: 'recorded', event, isNew: true };
    await tx.update(lenderEvents).set({ stateAfter }).where(eq(lenderEvents.eventNumber, event.eventNumber));
    return { kind: 'recorded', event: { ...event, stateAfter }, isNew: true };
  });
}

function again(event: LenderEvent, wanted: NewLenderEvent): LenderEventAnswer {
  const same =
    event.applicationId === wanted.applicationId &&
    event.status === wanted.status &&
    event.occurredAt.getTime() === wanted.occurredAt.getTime();
  return same ? { kind: 'recorded', event, isNew: false } : { kind: 'exists' };
}

/** Brings an application into the state that an event tells of, and notifies. */
async function apply(
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
    .set({ previousState: before.state, sequence: application.sequence, appliedAt: application.updatedAt })
    .where(eq(lenderEvents.eventNumber, event.eventNumber));
  await insertStatusNotification(tx, application, before.state, { ...event, write });
  return application;
}

/** Applies what has waited for this, in the order in which it happened, for as long as something can be applied. */
async function applyWaiting(
  tx: DbOrTransaction,
  application: Application,
  write: WriteChange,
): Promise<Application> {
  const waiting = await tx
    .select()
    .from(lenderEvents)
    .where(
      and(
        eq(lenderEvents.applicationId, application.applicationId),
        eq(lenderEvents.verdict, 'waiting'),
        isNull(lenderEvents.appliedAt),
      ),
    )
    .orderBy(asc(lenderEvents.occurredAt), asc(lenderEvents.eventNumber));
  let current = application;
  for (;;) {
    const at = waiting.findIndex(({ status }) => judgeStatus(current.state, status, true) === 'applied');
    const [next] = at === -1 ? [] : waiting.splice(at, 1);
    if (next === undefined) return current;
    current = await apply(tx, current, next, write);
  }
}

async function lockApplication(tx: DbOrTransaction, applicationId: string): Promise<Application | null> {
  const [row] = await tx
    .select()
    .from(creditApplications)
    .where(eq(creditApplications.applicationId, applicationId))
    .for('update');
  return row ?? null;
}

async function findEvent(
  tx: DbOrTransaction,
  { lender, environment }: Application,
  lenderEventId: string,
): Promise<LenderEvent | null> {
  const [row] = await tx
    .select()
    .from(lenderEvents)
    .where(
      and(
        eq(lenderEvents.lender, lender),
        eq(lenderEvents.environment, environment),
        eq(lenderEvents.lenderEventId, lenderEventId),
      ),
    );
  return row ?? null;
}

async function insertEvent(
  tx: DbOrTransaction,
  { lender, environment, state }: Application,
  wanted: NewLenderEvent,
  verdict: Verdict,
): Promise<LenderEvent | null> {
  const stateAfter = verdict === 'applied' ? wanted.status : state;
  const [row] = await tx
    .insert(lenderEvents)
    .values({ ...wanted, lender, environment, verdict, stateAfter })
    .onConflictDoNothing()
    .returning();
  return row ?? null;
}
