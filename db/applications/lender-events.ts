import { and, asc, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { WriteChange } from '../../domain/application';
import {
  byOccurrence,
  contradicts,
  judgeEvent,
  missingSteps,
  nextToApply,
} from '../../domain/application-states';
import type { ApplicationState } from '../../domain/application-states';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';
import { inScope, type ServiceCaller } from '../service-keys';
import { insertStatusNotification } from '../notifications/create';
import { columns, rowsOf, runPrepared, type Db, type DbOrTransaction } from '../postgres/connect';
import { creditApplications, lenderEvents } from '../schema';
import { applicationExists, type Application, type LenderEvent } from './applications';

export interface NewLenderEvent extends Pick<
  LenderEvent,
  'applicationId' | 'lenderEventId' | 'status' | 'occurredAt' | 'requestId'
> {
  /** Who sends it. Applications of other lenders and the other environment do not exist for it. */
  readonly service: ServiceCaller;
  readonly traceParent?: string | null;
}

type LenderEventAnswer =
  | {
      readonly kind: 'recorded';
      readonly event: LenderEvent;
      readonly isNew: boolean;
      /** Operator events of what contradicts the application's state: this event, or one that waited. */
      readonly contradictions: readonly OperatorEvent[];
    }
  | { readonly kind: 'exists' }
  | { readonly kind: 'limit_reached' }
  /** None exists for this key. `ofOthers`, for the log: it belongs to another lender or environment. */
  | { readonly kind: 'application_not_found'; readonly ofOthers: boolean };

/**
 * Records an event of a lender, and stores a notification for each state that the application reaches
 * by it, in one transaction under the lock of the application's row. An event that comes early waits:
 * it is applied by the event that makes it possible, or once its wait is over (applyOverdueEvents).
 * @param options.waitSeconds how long an early event waits for the steps before it
 */
export async function recordLenderEvent(
  db: Db,
  wanted: NewLenderEvent,
  { write, waitSeconds }: { readonly write: WriteChange; readonly waitSeconds: number },
): Promise<LenderEventAnswer> {
  return db.transaction(async (tx) => {
    const { applicationId, service } = wanted;
    const [application] = await tx
      .select()
      .from(creditApplications)
      .where(and(eq(creditApplications.applicationId, applicationId), inScope(service)))
      .for('update');
    if (application === undefined)
      return { kind: 'application_not_found', ofOthers: await applicationExists(tx, applicationId) };
    const known = await findEvent(tx, application, wanted.lenderEventId);
    if (known !== null) return again(known, wanted);
    const verdict = judgeEvent(application, wanted);
    const event = await insertEvent(tx, application, {
      ...wanted,
      serviceKeyId: service.keyId,
      verdict,
      waitSeconds,
    });
    if (event === null) {
      // Another call has stored the same id for another application, or this one has no room for it.
      const other = await findEvent(tx, application, wanted.lenderEventId);
      return { kind: other === null ? 'limit_reached' : 'exists' };
    }
    if (verdict !== 'applied') {
      const contradictions = await noteContradictions(tx, application, [event]);
      return { kind: 'recorded', event, isNew: true, contradictions };
    }
    const applied = await applyLenderEvent(tx, application, event, write);
    const { application: settled, contradictions } = await settleWaiting(tx, applied, {
      write,
      skips: false,
    });
    const { state: stateAfter } = settled;
    const recorded = { kind: 'recorded', isNew: true, contradictions } as const;
    if (stateAfter === event.stateAfter) return { ...recorded, event };
    await tx.update(lenderEvents).set({ stateAfter }).where(eq(lenderEvents.eventNumber, event.eventNumber));
    return { ...recorded, event: { ...event, stateAfter } };
  });
}

function again(event: LenderEvent, wanted: NewLenderEvent): LenderEventAnswer {
  const same =
    event.applicationId === wanted.applicationId &&
    event.status === wanted.status &&
    event.occurredAt.getTime() === wanted.occurredAt.getTime();
  return same ? { kind: 'recorded', event, isNew: false, contradictions: [] } : { kind: 'exists' };
}

async function findEvent(tx: DbOrTransaction, application: Application, lenderEventId: string) {
  const { lender, environment, lenderEventId: id } = lenderEvents;
  const [row] = await tx
    .select()
    .from(lenderEvents)
    .where(
      and(eq(lender, application.lender), eq(environment, application.environment), eq(id, lenderEventId)),
    );
  return row ?? null;
}

/** Of an application. Each is read with it, and each that waits may be applied in one transaction, of 1 s by then. */
const MOST = { stored: 1_000, waiting: 50 } as const;

const COLUMNS = `application_id, lender, environment, lender_event_id, status, occurred_at, received_at, verdict, state_after, waits_until,
  previous_state, sequence, applied_at, service_key_id, request_id`;
// drizzle's insert would name every column, but Postgres gives the number and the moment.
const INSERT = `
  insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after,
    waits_until, service_key_id, request_id)
  select $1, $2, $3, $4, $5, $6::text::timestamptz, $7, $8, service_now() + make_interval(secs => $9::float8), $10, $11
  where (select count(*) from (select from lender_events where application_id = $1 limit ${MOST.stored}) e) < ${MOST.stored}
    and ($9::float8 is null
      or (select count(*) from lender_events where application_id = $1 and waits_until is not null) < ${MOST.waiting})
  on conflict do nothing
  returning event_number::float8 as "eventNumber", ${columns('lender_events', COLUMNS)}`;

type InsertedEvent = Pick<
  LenderEvent,
  'applicationId' | 'lenderEventId' | 'status' | 'occurredAt' | 'verdict' | 'serviceKeyId' | 'requestId'
> & { readonly waitSeconds: number };

/** @returns null when the lender has used its id before, or the application has as many events as it may have */
export async function insertEvent(
  tx: DbOrTransaction,
  { lender, environment, state }: Application,
  event: InsertedEvent,
): Promise<LenderEvent | null> {
  const { applicationId, lenderEventId, status, occurredAt, verdict, requestId } = event;
  const ids = [applicationId, lender, environment, lenderEventId, status, occurredAt.toISOString()];
  const stateAfter = verdict === 'applied' ? status : state;
  const wait = verdict === 'waiting' ? event.waitSeconds : null;
  const parameters = [...ids, verdict, stateAfter, wait, event.serviceKeyId, requestId];
  const [row] = await rowsOf<LenderEvent>(tx, INSERT, parameters);
  return row ?? null;
}

/** Brings a locked application into the state of an event, and stores its notification. */
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

/**
 * Applies the waiting events of an application (row locked) as far as possible, and ends the wait of
 * those that can no longer be applied.
 * @param skips whether events whose wait is over are applied without the missing steps
 */
async function settleWaiting(
  tx: DbOrTransaction,
  application: Application,
  { write, skips }: { readonly write: WriteChange; readonly skips: boolean },
) {
  const isOver = sql<boolean>`${lenderEvents.waitsUntil} <= service_now()`;
  const rows = await tx
    .select({ event: lenderEvents, isOver })
    .from(lenderEvents)
    .where(and(eq(lenderEvents.applicationId, application.applicationId), isNotNull(lenderEvents.waitsUntil)))
    .orderBy(asc(lenderEvents.eventNumber));
  const over = new Set(rows.filter((row) => skips && row.isOver).map(({ event }) => event));
  let waiting = rows.map(({ event }) => event).toSorted(byOccurrence);
  let current = application;
  const moves: { readonly from: ApplicationState; readonly to: ApplicationState }[] = [];
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
  return { application: current, moves, contradictions: await noteContradictions(tx, current, ended) };
}

/** Stores an operator event for each event that contradicts the state of its application. @returns those */
async function noteContradictions(
  tx: DbOrTransaction,
  application: Application,
  notApplied: readonly LenderEvent[],
): Promise<OperatorEvent[]> {
  const found = notApplied
    .filter((event) => contradicts(application, event))
    .map(({ lenderEventId, status, occurredAt }) =>
      operatorEvent('lender_contradiction', application, {
        from: application.state,
        to: status,
        lender_event_id: lenderEventId,
        occurred_at: occurredAt,
        state_occurred_at: application.stateOccurredAt,
      }),
    );
  await appendOperatorEvents(tx, found);
  return found;
}

const operatorEvent = (
  kind: OperatorEvent['kind'],
  { applicationId, partnerId, environment, lender, lenderReference }: Application,
  more: OperatorEvent['details'],
): OperatorEvent => ({
  kind,
  partnerId,
  environment,
  endpointId: null,
  details: { application_id: applicationId, lender, lender_reference: lenderReference, ...more },
});

const OVERDUE = `
  select application_id as id from lender_events
  where waits_until <= service_now() and application_id <> all($2::text[])
  group by application_id order by min(waits_until) limit $1::int`;

/** @param except those that are passed over */
export const overdueApplications = async (
  db: DbOrTransaction,
  limit: number,
  except: readonly string[] = [],
) => (await runPrepared<{ id: string }>(db, OVERDUE, [limit, except])).map(({ id }) => id);

/**
 * Applies the events of an application whose wait is over, without the missing steps, in one
 * transaction under the lock of its row, and stores an operator event that names those steps. It skips
 * a locked row, and the next round tries again.
 * @returns the operator events, those of events that contradict the state too; none when there was nothing to apply
 */
export async function applyOverdueEvents(
  db: Db,
  applicationId: string,
  write: WriteChange,
): Promise<readonly OperatorEvent[]> {
  return db.transaction(async (tx) => {
    const [before] = await tx
      .select()
      .from(creditApplications)
      .where(eq(creditApplications.applicationId, applicationId))
      .for('update', { skipLocked: true });
    if (before === undefined) return [];
    const { moves, contradictions } = await settleWaiting(tx, before, { write, skips: true });
    const missing = new Set(moves.flatMap(({ from, to }) => missingSteps(from, to)));
    if (missing.size === 0) return contradictions;
    const event = operatorEvent('lender_steps_missing', before, {
      state_before: before.state,
      missing: [...missing],
      applied: moves.map(({ to }) => to),
    });
    await appendOperatorEvents(tx, [event]);
    return [event, ...contradictions];
  });
}
