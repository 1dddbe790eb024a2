import { and, eq, sql } from 'drizzle-orm';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import type { Db, DbOrTransaction } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { deliveryAttempts } from '../schema';
import { noteFailure, noteSuccess, SUCCESS_IS_NEWS } from '../endpoints/health';
import { testHasMoved } from './channels';
import { lockNotification, type Notification } from './read';
import type { OperatorEvent } from '../audit/operator-events';
import { applyDelivery, applyEnd, applyEvent } from './transition';

export interface AttemptRef {
  readonly notificationId: string;
  readonly attemptNumber: number;
}

/** A result that no attempt of ours can have had: there is no row of it, or the row says otherwise. It changes nothing. */
export class ForeignResult extends Error {
  override readonly name = 'ForeignResult';
}

/** The end of a notification that was not delivered. */
export interface NotificationEnd {
  readonly state: 'failed' | 'cancelled' | 'held';
  readonly reason: string;
}

const EVENT_OF = { failed: 'fail', cancelled: 'cancel', held: 'hold' } as const;

/**
 * Finishes an attempt's row, and its notification when that ends with it. The same again changes nothing: a delivery is
 * counted by the one update that finds `delivered_at` empty.
 * @param end null while further attempts follow; a 2xx always ends it.
 * @param retryInMs wait before the next attempt, in milliseconds; null when none follows.
 * @returns `event`: what operators should know of its endpoint, which is written down with it: it was disabled, it has failed for
 *   long, or it is well again. `ended`: the type of the notification's event when that has ended with it, undelivered.
 * @throws ForeignResult
 */
export async function recordAttempt(
  db: Db,
  attempt: AttemptRef,
  result: { readonly outcome: DeliveryOutcome; readonly address: string | null },
  end: NotificationEnd | null,
  retryInMs: number | null = null,
): Promise<{ readonly event: OperatorEvent | null; readonly ended: string | null }> {
  const { notificationId } = attempt;
  const { outcome } = result;
  return db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    const finished = await finishRow(tx, attempt, result);
    const { month, generation } = finished;
    // A late result of an older generation does not end the one that is under way now; but a delivery is a delivery.
    const current = row?.generation === generation;
    let ended: string | null = null;
    if (row !== null && outcome.kind === 'delivered' && (current || row.deliveredAt === null)) {
      await applyDelivery(tx, row, month);
    }
    if (row !== null && outcome.kind === 'failed' && current) {
      if (end !== null) ended = await endedAs(tx, row, end);
      // Only after the first attempt is there a slot to leave, and anything to put off.
      else await applyEvent(tx, row, row.takenAt === null ? 'retry_again' : 'retry', nextAttempt(retryInMs));
    }
    tellCaller(tx, row);
    return { event: await noteHealth(tx, outcome, finished), ended };
  });
}

/** @returns the type of its event; null when it has ended already. */
async function endedAs(tx: DbOrTransaction, row: Notification, end: NotificationEnd): Promise<string | null> {
  return (await applyEnd(tx, row, EVENT_OF[end.state], end.reason)) ? row.eventType : null;
}

const nextAttempt = (retryInMs: number | null) => ({
  next_attempt_at: sql`service_now() + make_interval(secs => ${retryInMs}::float8 / 1000)`,
});

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
 * @returns the type of its event; null when nothing changed.
 */
export async function endNotification(
  db: Db,
  { notificationId, generation }: { notificationId: string; generation: number },
  end: NotificationEnd,
): Promise<string | null> {
  return db.transaction(async (tx) => {
    const row = await lockNotification(tx, notificationId);
    if (row === null || row.generation !== generation) return null;
    const ended = await endedAs(tx, row, end);
    tellCaller(tx, row);
    return ended;
  });
}

/** A call waits for the first attempt of a test; nobody waits for what else is sent. */
export function tellCaller(tx: DbOrTransaction, row: Notification | null): void {
  if (row !== null && row.reservedMonth !== null) hint(tx, testHasMoved(row.notificationId));
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
  readonly month: string;
  readonly endpointId: string;
  readonly generation: number;
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
  const attempt = `attempt ${attemptNumber} of ${notificationId}`;
  if (before === undefined) throw new ForeignResult(`${attempt} has no row`);
  // Closed as unknown, it is heard of after all.
  if (before.outcome === 'unknown') return { ...before, fresh: true };
  if (before.outcome !== outcome.kind) throw new ForeignResult(`${attempt} is recorded as ${before.outcome}`);
  return { ...before, fresh: false };
}
