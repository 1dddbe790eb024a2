import { and, asc, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { WriteChange } from '../../domain/application';
import {
  byOccurrence,
  contradicts,
  isKnownState,
  judgeEvent,
  missingSteps,
  nextToApply,
} from '../../domain/application-states';
import type { ApplicationState } from '../../domain/application-states';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';
import type { ServiceCaller } from '../service-keys';
import { statusNotification, type ChangeCause } from '../notifications/create';
import { isDue } from '../notifications/notification';
import { columns, databaseNow, firstRow, msText, oneRow, runPrepared } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { lenderEvents } from '../schema';
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
  | { readonly kind: 'too_far_ahead' }
  /** The application, or an event of it that waits, has a state of a newer release. */
  | { readonly kind: 'newer_state'; readonly state: string }
  /** None exists for this key. `ofOthers`, for the log: it belongs to another lender or environment. */
  | { readonly kind: 'application_not_found'; readonly ofOthers: boolean };

/**
 * Records an event of a lender, and stores a notification for each state that the application reaches
 * by it, in one transaction under the lock of the application's row. An event that comes early waits:
 * it is applied by the event that makes it possible, or once its wait is over (applyOverdueEvents).
 * @param options.mostAheadMs how far in the future an event may be dated
 * @param options.waitSeconds how long an early event waits for the steps before it
 */
export async function recordLenderEvent(
  db: Db,
  wanted: NewLenderEvent,
  {
    write,
    waitSeconds,
    mostAheadMs = Infinity,
  }: { readonly write: WriteChange; readonly waitSeconds: number; readonly mostAheadMs?: number },
): Promise<LenderEventAnswer> {
  const recorded = db.transaction(async (tx): Promise<LenderEventAnswer> => {
    const { applicationId, occurredAt, service } = wanted;
    const isAhead = (nowMs: number) => occurredAt.getTime() > nowMs + mostAheadMs;
    // A lender does not repeat what was refused for this, and the clock of this machine may be slow.
    if (isAhead(Date.now()) && isAhead((await databaseNow(tx)).getTime())) return { kind: 'too_far_ahead' };
    const { lender, environment } = service;
    const application = await firstRow<Application>(tx, LOCK, [applicationId, lender, environment]);
    if (application === null)
      return { kind: 'application_not_found', ofOthers: await applicationExists(tx, applicationId) };
    if (!isKnownState(application.state)) {
      const known = await findEvent(tx, application, wanted.lenderEventId);
      return known === null ? { kind: 'newer_state', state: application.state } : again(known, wanted);
    }
    const verdict = judgeEvent(application, wanted);
    const made = { ...wanted, serviceKeyId: service.keyId, verdict, waitSeconds };
    const inserted = await insertEvent(tx, application, made);
    if (inserted === null) {
      // The lender has sent it before, or the application has no room for it.
      const known = await findEvent(tx, application, wanted.lenderEventId);
      return known === null ? { kind: 'limit_reached' } : again(known, wanted);
    }
    const { event, othersWait } = inserted;
    if (verdict !== 'applied') {
      const contradictions = await noteContradictions(tx, application, [event]);
      return { kind: 'recorded', event, isNew: true, contradictions };
    }
    const at = event.receivedAt;
    const { traceParent = null } = wanted;
    const applied = await applyLenderEvent(tx, application, event, { write, at, traceParent });
    if (!othersWait) return { kind: 'recorded', event, isNew: true, contradictions: [] };
    const { application: settled, contradictions } = await settleWaiting(tx, applied, {
      write,
      at,
      skips: false,
    });
    const { state: stateAfter } = settled;
    const recorded = { kind: 'recorded', isNew: true, contradictions } as const;
    if (stateAfter === event.stateAfter) return { ...recorded, event };
    await tx.update(lenderEvents).set({ stateAfter }).where(eq(lenderEvents.eventNumber, event.eventNumber));
    return { ...recorded, event: { ...event, stateAfter } };
  });
  return recorded.catch((error: unknown) => {
    if (error instanceof NewerState) return { kind: 'newer_state', state: error.state };
    throw error;
  });
}

/** Nothing is judged by a state that only a newer release knows. */
class NewerState extends Error {
  override readonly name = 'NewerState';

  constructor(readonly state: string) {
    super(`the state ${state} is of a newer release, which has to apply it`);
  }
}

const lockText = (condition: string) => `
  select ${columns('a', 'application_id, lender, lender_reference, quote_id, partner_id, environment, merchant_id, merchant_reference')},
    ${columns('a', 'credit_product, state, state_occurred_at, sequence, simulated, service_key_id, request_id, created_at, updated_at')},
    a.loan_pence::float8 as "loanPence", a.deposit_pence::float8 as "depositPence"
  from credit_applications a where a.application_id = $1 ${condition}`;
// Compared so that no index has them: planned when the table is empty, the index of a lender's references would be read whole.
const LOCK = lockText(
  'and (a.lender, a.environment) is not distinct from ($2::text, $3::text) and a.simulated is null for update',
);
const LOCK_IF_FREE = lockText('for update skip locked');

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
  returning event_number::float8 as "eventNumber", ${columns('lender_events', COLUMNS)},
    exists (select from lender_events w where w.application_id = $1 and w.waits_until is not null) as "othersWait"`;

type InsertedEvent = Pick<
  LenderEvent,
  'applicationId' | 'lenderEventId' | 'status' | 'occurredAt' | 'verdict' | 'serviceKeyId' | 'requestId'
> & { readonly waitSeconds: number };

/**
 * @returns `othersWait`: earlier events of the application wait; null when the lender has used its id before, or the
 * application has as many events as it may have
 */
export async function insertEvent(
  tx: DbOrTransaction,
  { lender, environment, state }: Application,
  event: InsertedEvent,
): Promise<{ readonly event: LenderEvent; readonly othersWait: boolean } | null> {
  const { applicationId, lenderEventId, status, occurredAt, verdict, requestId } = event;
  const ids = [applicationId, lender, environment, lenderEventId, status, occurredAt.toISOString()];
  const stateAfter = verdict === 'applied' ? status : state;
  const wait = verdict === 'waiting' ? event.waitSeconds : null;
  const parameters = [...ids, verdict, stateAfter, wait, event.serviceKeyId, requestId];
  const row = await firstRow<LenderEvent & { readonly othersWait: boolean }>(tx, INSERT, parameters);
  if (row === null) return null;
  const { othersWait, ...inserted } = row;
  return { event: inserted, othersWait };
}

const APPLY = `
  select apply_event_1($1, $2::int8, $3, $4, $5::text::timestamptz, $6::text::timestamptz, $7, $8, $9, $10, $11) as state`;

/**
 * Brings a locked application into the state of an event, and stores its notification.
 * @param how.at when, by the clock of the database
 * @param how.traceParent of the request that sent the event, where traces are made
 */
export async function applyLenderEvent(
  tx: DbOrTransaction,
  before: Application,
  event: LenderEvent,
  { write, at, traceParent = null }: { readonly at: Date } & Omit<ChangeCause, 'requestId'>,
): Promise<Application> {
  const { applicationId, state: previous } = before;
  const { eventNumber, status: state, occurredAt, requestId } = event;
  // Later than the last change, so that the ids of its notifications are in order.
  const updatedAt = new Date(Math.max(at.getTime(), before.updatedAt.getTime() + 1));
  const moved = { state, stateOccurredAt: occurredAt, sequence: before.sequence + 1, updatedAt };
  const application = { ...before, ...moved };
  const { notificationId, eventId, body } = statusNotification(application, previous, write);
  const change = [
    applicationId,
    eventNumber,
    previous,
    state,
    occurredAt.toISOString(),
    updatedAt.toISOString(),
  ];
  const notification = [notificationId, eventId, body, requestId, traceParent];
  const stored = await oneRow<{ state: string }>(tx, APPLY, [...change, ...notification]);
  if (stored.state === 'queued') hint(tx, isDue(application));
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
  { write, at, skips }: { readonly write: WriteChange; readonly at: Date; readonly skips: boolean },
) {
  const isOver = sql<boolean>`${lenderEvents.waitsUntil} <= service_now()`;
  const rows = await tx
    .select({ event: lenderEvents, isOver })
    .from(lenderEvents)
    .where(and(eq(lenderEvents.applicationId, application.applicationId), isNotNull(lenderEvents.waitsUntil)))
    .orderBy(asc(lenderEvents.eventNumber));
  for (const state of [application.state, ...rows.map(({ event }) => event.status)])
    if (!isKnownState(state)) throw new NewerState(state);
  const over = new Set(rows.filter((row) => skips && row.isOver).map(({ event }) => event));
  let waiting = rows.map(({ event }) => event).toSorted(byOccurrence);
  let current = application;
  const moves: { readonly from: ApplicationState; readonly to: ApplicationState }[] = [];
  for (;;) {
    const next = nextToApply(current, waiting, (event) => over.has(event));
    if (next === null) break;
    waiting = waiting.filter((event) => event !== next);
    moves.push({ from: current.state, to: next.status });
    current = await applyLenderEvent(tx, current, next, { write, at });
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

const NOW = `select ${msText('service_now()')} as "nowMs"`;

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
    const before = await firstRow<Application>(tx, LOCK_IF_FREE, [applicationId]);
    if (before === null) return [];
    const { nowMs } = await oneRow<{ nowMs: number }>(tx, NOW);
    const how = { write, at: new Date(nowMs), skips: true };
    const { moves, contradictions } = await settleWaiting(tx, before, how);
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
