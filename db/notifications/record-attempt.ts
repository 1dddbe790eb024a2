import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts, notifications } from '../schema';
import { deferLater, hastenLater } from './application-order';
import { noteFailure, noteSuccess, SUCCESS_IS_NEWS } from '../endpoints/health';
import { lockNotification, type Notification } from './read';
import { closeUnfinished } from './open-attempt';
import type { OperatorEvent } from '../audit/operator-events';
import { currentMonth, releaseMonth } from './quota';

/** Channel on which API processes hear that an attempt has ended; the payload is the notification's id. */
export const ATTEMPTS_CHANNEL = 'attempts';

export interface AttemptRef {
  readonly notificationId: string;
  readonly attemptNumber: number;
}

/** Why a notification ends without having been delivered. */
export type EndState = 'failed' | 'cancelled' | 'held';

/**
 * Finishes an attempt's row, and its notification when that ends with it. The same again changes nothing: a delivery is
 * counted by the one update that finds `delivered_at` empty.
 * @param end null while further attempts follow; a 2xx always ends it.
 * @returns what operators should know of its endpoint, which is written down with it: it was disabled, it has failed for
 *   long, or it is well again.
 */
export async function recordAttempt(
  db: Db,
  attempt: AttemptRef,
  result: { readonly outcome: DeliveryOutcome; readonly address: string | null },
  end: { readonly state: EndState; readonly reason: string } | null,
): Promise<{ readonly event: OperatorEvent | null }> {
  const { notificationId, attemptNumber } = attempt;
  const { outcome } = result;
  return db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    const finished = await finishRow(tx, attempt, result);
    const { month, generation } = finished;
    // A late word of an older generation is no end of the one that is under way now; but a delivery is a delivery.
    const current = row?.generation === generation;
    if (row !== null && outcome.kind === 'delivered' && (current || row.deliveredAt === null)) {
      await endDelivered(tx, row, month);
      await hastenLater(tx, row);
    }
    if (row !== null && outcome.kind === 'failed' && current) {
      if (end !== null) {
        await endOtherwise(tx, row, end);
        await hastenLater(tx, row);
      } else if (row.takenAt !== null) {
        await leavePlace(tx, row);
        await deferLater(tx, row);
      }
    }
    await tx.execute(sql`select pg_notify(${ATTEMPTS_CHANNEL}, ${`${notificationId}:${attemptNumber}`})`);
    return { event: await noteHealth(tx, outcome, finished) };
  });
}

/** Last in its transaction, so that the endpoint's row, which all of its attempts share, is locked for the commit only. */
async function noteHealth(
  tx: DbOrTransaction,
  outcome: DeliveryOutcome,
  { endpointId, fresh, successIsNews }: FinishedAttempt,
): Promise<OperatorEvent | null> {
  if (!fresh) return null;
  if (outcome.kind === 'failed') return noteFailure(tx, endpointId, { gone: outcome.failure === 'gone' });
  return successIsNews ? noteSuccess(tx, endpointId) : null;
}

/**
 * Ends a notification for which no further attempt is made, or holds it. One that has ended already stays as it is.
 * @param generation of the workflow that asks; another one's word no longer counts.
 */
export async function endNotification(
  db: Db,
  { notificationId, generation }: { notificationId: string; generation: number },
  end: { readonly state: EndState; readonly reason: string },
): Promise<void> {
  await db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    if (row === null || row.generation !== generation) return;
    await closeUnfinished(tx, notificationId);
    await endOtherwise(tx, row, end);
    await hastenLater(tx, row);
    await tx.execute(sql`select pg_notify(${ATTEMPTS_CHANNEL}, ${`${notificationId}:0`})`);
  });
}

/** Keeps the beginning of what the endpoint answered with its attempt. */
export async function keepAnswer(
  db: DbOrTransaction,
  { notificationId, attemptNumber }: AttemptRef,
  answer: string,
): Promise<void> {
  await db
    .update(deliveryAttempts)
    .set({ answer })
    .where(
      and(
        eq(deliveryAttempts.notificationId, notificationId),
        eq(deliveryAttempts.attemptNumber, attemptNumber),
      ),
    );
}

interface FinishedAttempt {
  /** First day of the UTC month in which it started. */
  readonly month: string;
  readonly endpointId: string;
  readonly generation: number;
  /** The first word of what became of it; the same again says nothing new about the endpoint. */
  readonly fresh: boolean;
  readonly successIsNews: boolean;
}

async function finishRow(
  tx: DbOrTransaction,
  { notificationId, attemptNumber }: AttemptRef,
  { outcome, address }: { outcome: DeliveryOutcome; address: string | null },
): Promise<FinishedAttempt> {
  const failed = outcome.kind === 'failed' ? outcome : null;
  const facts = sql`
    a.endpoint_id as "endpointId", a.generation,
    date_trunc('month', a.started_at at time zone 'UTC')::date::text as month,
    (select ${SUCCESS_IS_NEWS} from webhook_endpoints e where e.endpoint_id = a.endpoint_id) as "successIsNews"`;
  const [finished] = await tx.execute<Omit<FinishedAttempt, 'fresh'>>(sql`
    update delivery_attempts a
    set finished_at = service_now(), outcome = ${outcome.kind}, failure = ${failed?.failure ?? null},
      http_status = ${outcome.httpStatus}, duration_ms = ${outcome.durationMs},
      retry_after_ms = ${failed?.retryAfterMs ?? null}, address = ${address}
    where a.notification_id = ${notificationId} and a.attempt_number = ${attemptNumber} and a.finished_at is null
    returning ${facts}`);
  if (finished !== undefined) return { ...finished, fresh: true };
  const [before] = await tx.execute<Omit<FinishedAttempt, 'fresh'> & { outcome: string }>(sql`
    select ${facts}, a.outcome from delivery_attempts a
    where a.notification_id = ${notificationId} and a.attempt_number = ${attemptNumber}`);
  if (before === undefined) throw new Error(`attempt ${attemptNumber} of ${notificationId} has no row`);
  // Closed as unknown, it is heard of after all.
  return { ...before, fresh: before.outcome === 'unknown' };
}

/** Its first attempt has ended, and others follow: the endpoint's place is free for another first attempt. */
async function leavePlace(tx: DbOrTransaction, { notificationId }: Notification): Promise<void> {
  await tx
    .update(notifications)
    .set({ takenAt: null })
    .where(eq(notifications.notificationId, notificationId));
}

async function endDelivered(tx: DbOrTransaction, row: Notification, month: string): Promise<void> {
  if (row.deliveredAt !== null) return endRepeated(tx, row, 'delivered', null);
  await tx
    .update(notifications)
    .set({
      state: 'delivered',
      endReason: null,
      deliveredAt: sql`service_now()`,
      endedAt: sql`service_now()`,
      reservedMonth: null,
      failedMonth: null,
    })
    .where(and(eq(notifications.notificationId, row.notificationId), isNull(notifications.deliveredAt)));
  if (row.reservedMonth !== null) await releaseMonth(tx, row, row.reservedMonth);
  if (row.failedMonth !== null) await count(tx, row, row.failedMonth, { failed: -1 });
  await count(tx, row, month, { delivered: 1 });
}

/** Sent again after it had been delivered: it has been counted, and stays counted, once. */
async function endRepeated(
  tx: DbOrTransaction,
  row: Notification,
  state: EndState | 'delivered',
  endReason: string | null,
): Promise<void> {
  await tx
    .update(notifications)
    .set({ state, endReason, ...endOrHold(state) })
    .where(
      and(
        eq(notifications.notificationId, row.notificationId),
        inArray(notifications.state, ['pending', 'started']),
      ),
    );
}

const endOrHold = (state: EndState | 'delivered') =>
  state === 'held' ? { heldAt: sql`service_now()` } : { endedAt: sql`service_now()` };

async function endOtherwise(
  tx: DbOrTransaction,
  row: Notification,
  { state, reason }: { state: EndState; reason: string },
): Promise<void> {
  if (row.state !== 'pending' && row.state !== 'started') return;
  if (row.deliveredAt !== null) return endRepeated(tx, row, state, reason);
  if (row.reservedMonth !== null) await releaseMonth(tx, row, row.reservedMonth);
  let { failedMonth } = row;
  if (state === 'failed' && failedMonth === null) {
    failedMonth = await currentMonth(tx);
    await count(tx, row, failedMonth, { failed: 1 });
  }
  await tx
    .update(notifications)
    .set({
      state,
      endReason: reason,
      reservedMonth: null,
      failedMonth,
      ...endOrHold(state),
    })
    .where(eq(notifications.notificationId, row.notificationId));
}

async function count(
  tx: DbOrTransaction,
  { partnerId, environment, eventType }: Notification,
  month: string,
  { delivered = 0, failed = 0 }: { delivered?: number; failed?: number },
): Promise<void> {
  await tx.execute(sql`
    insert into monthly_counts as c (partner_id, environment, month, event_type, delivered, failed)
    values (${partnerId}, ${environment}, ${month}::date, ${eventType}, ${Math.max(delivered, 0)}, ${Math.max(failed, 0)})
    on conflict (partner_id, environment, month, event_type)
    do update set delivered = c.delivered + ${delivered}, failed = c.failed + ${failed}`);
}
