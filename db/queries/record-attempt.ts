import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import type { Db, DbOrTransaction } from '../connect';
import { deliveryAttempts, notifications, webhookEndpoints } from '../schema';
import { lockNotification, type Notification } from './notifications';
import { closeUnfinished } from './open-attempt';
import { currentMonth, releaseMonth } from './reserve-month';

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
 * @returns the endpoint that this disabled, because it answered 410.
 */
export async function recordAttempt(
  db: Db,
  attempt: AttemptRef,
  result: { readonly outcome: DeliveryOutcome; readonly address: string | null },
  end: { readonly state: EndState; readonly reason: string } | null,
): Promise<{ readonly disabledEndpointId: string | null }> {
  const { notificationId, attemptNumber } = attempt;
  const { outcome } = result;
  return db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    const { month, endpointId, generation } = await finishRow(tx, attempt, result);
    const gone = outcome.kind === 'failed' && outcome.failure === 'gone';
    const disabled = gone && (await disableGone(tx, endpointId));
    // A late word of an older generation is no end of the one that is under way now; but a delivery is a delivery.
    const current = row?.generation === generation;
    if (row !== null && outcome.kind === 'delivered' && (current || row.deliveredAt === null)) {
      await endDelivered(tx, row, month);
    }
    if (row !== null && outcome.kind === 'failed' && current) {
      if (end !== null) await endOtherwise(tx, row, end);
      else if (row.takenAt !== null) await leavePlace(tx, row);
    }
    await tx.execute(sql`select pg_notify(${ATTEMPTS_CHANNEL}, ${`${notificationId}:${attemptNumber}`})`);
    return { disabledEndpointId: disabled ? endpointId : null };
  });
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

/** 410: it wants no more. An endpoint that is disabled or removed already stays as it is. */
async function disableGone(tx: DbOrTransaction, endpointId: string): Promise<boolean> {
  const disabled = await tx
    .update(webhookEndpoints)
    .set({ state: 'disabled', disabledReason: 'gone', updatedAt: sql`service_now()` })
    .where(and(eq(webhookEndpoints.endpointId, endpointId), eq(webhookEndpoints.state, 'active')))
    .returning({ endpointId: webhookEndpoints.endpointId });
  return disabled.length > 0;
}

/** @returns the attempt's endpoint and generation, and the first day of the UTC month in which it started. */
async function finishRow(
  tx: DbOrTransaction,
  { notificationId, attemptNumber }: AttemptRef,
  { outcome, address }: { outcome: DeliveryOutcome; address: string | null },
): Promise<{ month: string; endpointId: string; generation: number }> {
  const failed = outcome.kind === 'failed' ? outcome : null;
  const where = and(
    eq(deliveryAttempts.notificationId, notificationId),
    eq(deliveryAttempts.attemptNumber, attemptNumber),
  );
  await tx
    .update(deliveryAttempts)
    .set({
      finishedAt: sql`service_now()`,
      outcome: outcome.kind,
      failure: failed?.failure ?? null,
      httpStatus: outcome.httpStatus,
      durationMs: outcome.durationMs,
      retryAfterMs: failed?.retryAfterMs ?? null,
      address,
    })
    .where(and(where, isNull(deliveryAttempts.finishedAt)));
  const [row] = await tx
    .select({
      month: sql<string>`date_trunc('month', started_at at time zone 'UTC')::date::text`,
      endpointId: deliveryAttempts.endpointId,
      generation: deliveryAttempts.generation,
    })
    .from(deliveryAttempts)
    .where(where);
  if (row === undefined) throw new Error(`attempt ${attemptNumber} of ${notificationId} has no row`);
  return row;
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
    .set({ state, endReason, ...(state !== 'held' && { endedAt: sql`service_now()` }) })
    .where(
      and(
        eq(notifications.notificationId, row.notificationId),
        inArray(notifications.state, ['pending', 'started']),
      ),
    );
}

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
      ...(state !== 'held' && { endedAt: sql`service_now()` }),
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
