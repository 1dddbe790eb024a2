import { and, eq } from 'drizzle-orm';
import { type ApplicationState, type Verdict, judgeEvent } from '../../domain/application-states';
import type { WriteChange } from '../../domain/application';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { msText, runPrepared } from '../postgres/prepared';
import { creditApplications, lenderEvents } from '../schema';
import { applicationExists, inScope } from './read';
import { applyLenderEvent, settleWaiting, type LenderEvent } from './apply-lender-events';
import type { ServiceCaller } from '../keys/service-keys';
import type { Application } from './notifications';

export type { LenderEvent } from './apply-lender-events';

/** A status as a lender tells it. */
export interface NewLenderEvent {
  readonly applicationId: string;
  /** The lender's own id of the event. */
  readonly lenderEventId: string;
  readonly status: ApplicationState;
  /** When the lender says it happened. */
  readonly occurredAt: Date;
  /** Who sends it: applications of other lenders and the other environment do not exist for it. */
  readonly service: ServiceCaller;
  readonly requestId: string | null;
  /** `traceparent` of the request; none where no traces are made. */
  readonly traceParent?: string | null;
}

export type LenderEventAnswer =
  /** Taken in now, or before with the same content. */
  | { readonly kind: 'recorded'; readonly event: LenderEvent; readonly isNew: boolean }
  /** The lender's event id stands for another event. */
  | { readonly kind: 'exists' }
  /** There is none for this key. `ofOthers`, for the log only: it belongs to another lender or environment. */
  | { readonly kind: 'application_not_found'; readonly ofOthers: boolean };

/**
 * Takes in what a lender says of an application, and stores a notification for each state that it comes into by that, all
 * in one transaction under the lock of the application's row. What has come early waits, and is applied by the event that
 * makes it possible, or once its wait is over (`apply-overdue-events.ts`).
 * @param options.waitSeconds how long what comes early waits for the steps before it
 */
export async function recordLenderEvent(
  db: Db,
  wanted: NewLenderEvent,
  { write, waitSeconds }: { readonly write: WriteChange; readonly waitSeconds: number },
): Promise<LenderEventAnswer> {
  return db.transaction(async (tx) => {
    const application = await lockApplication(tx, wanted);
    if (application === null) {
      return { kind: 'application_not_found', ofOthers: await applicationExists(tx, wanted.applicationId) };
    }
    const known = await findEvent(tx, application, wanted.lenderEventId);
    if (known !== null) return again(known, wanted);
    const verdict = judgeEvent(application, wanted);
    const event = await insertEvent(tx, application, { ...wanted, verdict, waitSeconds });
    // The same id was told of another application at the same moment.
    if (event === null) return { kind: 'exists' };
    if (verdict !== 'applied') return { kind: 'recorded', event, isNew: true };
    const applied = await applyLenderEvent(tx, application, event, write);
    const { state: stateAfter } = (await settleWaiting(tx, applied, { write, skips: false })).application;
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

async function lockApplication(
  tx: DbOrTransaction,
  { applicationId, service }: NewLenderEvent,
): Promise<Application | null> {
  const [row] = await tx
    .select()
    .from(creditApplications)
    .where(and(eq(creditApplications.applicationId, applicationId), inScope(service)))
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
  {
    waitSeconds,
    service,
    ...wanted
  }: NewLenderEvent & { readonly verdict: Verdict; readonly waitSeconds: number },
): Promise<LenderEvent | null> {
  const { traceParent: _, ...told } = wanted;
  const { applicationId, lenderEventId, occurredAt, verdict, status, requestId } = told;
  const stateAfter = verdict === 'applied' ? status : state;
  const { keyId: serviceKeyId } = service;
  // drizzle names every column, and the number and the moment are for Postgres to give.
  const [row] = await runPrepared<{ eventNumber: number; received: number; waits: number | null }>(
    tx,
    INSERT,
    [
      applicationId,
      lender,
      environment,
      lenderEventId,
      status,
      occurredAt.toISOString(),
      verdict,
      stateAfter,
      verdict === 'waiting' ? waitSeconds : null,
      serviceKeyId,
      requestId,
    ],
  );
  if (row === undefined) return null;
  return {
    ...told,
    eventNumber: row.eventNumber,
    lender,
    environment,
    receivedAt: new Date(row.received),
    stateAfter,
    waitsUntil: row.waits === null ? null : new Date(row.waits),
    previousState: null,
    sequence: null,
    appliedAt: null,
    serviceKeyId,
  };
}

const INSERT = `
  insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after,
    waits_until, service_key_id, request_id)
  values ($1, $2, $3, $4, $5, $6::text::timestamptz, $7, $8, service_now() + make_interval(secs => $9::float8), $10, $11)
  on conflict do nothing
  returning event_number::float8 as "eventNumber", ${msText('received_at')} as received, ${msText('waits_until')} as waits`;
