import { sql, type SQL } from 'drizzle-orm';
import {
  mayHappen,
  NOTIFICATION_TRANSITIONS,
  type NotificationEvent,
  type Transition,
} from '../../domain/notification-states';
import type { DbOrTransaction } from '../postgres/connect';
import { putOffLater, releaseLater } from './application-order';
import { closeUnfinished } from './close-unfinished';
import { addToCount, currentMonth, releaseMonth } from './quota';
import type { Notification } from './read';
import { updateSql, type Given } from './update';

/**
 * Applies an event to a notification whose row is locked, with all that follows: the unfinished attempt, the quota and
 * the count, the later events of the application.
 * @returns false, with nothing changed, when the event cannot happen to it any more.
 */
export async function applyEvent<E extends NotificationEvent>(
  tx: DbOrTransaction,
  row: Notification,
  event: E,
  given: Given<E, SQL>,
): Promise<boolean> {
  if (!mayHappen(event, row.state)) return false;
  const transition: Transition = NOTIFICATION_TRANSITIONS[event];
  if (transition.closesAttempt) await closeUnfinished(tx, row.notificationId);
  await tx.execute(sql`${updateSql(event, given)} where t.notification_id = ${row.notificationId}`);
  if (transition.releasesQuota && row.reservedMonth !== null) await releaseMonth(tx, row, row.reservedMonth);
  if (transition.laterEvents === 'put_off') await putOffLater(tx, row);
  if (transition.laterEvents === 'due_now') await releaseLater(tx, row);
  return true;
}

/**
 * Applies a delivery: counted once, in the month of its attempt, however often it is reported.
 * @param month first day of the UTC month in which the attempt began.
 */
export async function applyDelivery(tx: DbOrTransaction, row: Notification, month: string): Promise<void> {
  if (row.deliveredAt !== null) {
    await applyEvent(tx, row, 'deliver_again', {});
    return;
  }
  await applyEvent(tx, row, 'deliver', {});
  if (row.failedMonth !== null) await addToCount(tx, row, row.failedMonth, { failed: -1 });
  await addToCount(tx, row, month, { delivered: 1 });
}

/**
 * Applies the end of a notification that was not delivered. One that was delivered once stays counted as that.
 * @returns false, with nothing changed, when it has ended already.
 */
export async function applyEnd(
  tx: DbOrTransaction,
  row: Notification,
  event: 'fail' | 'cancel' | 'hold',
  reason: string,
): Promise<boolean> {
  const endReason = sql`${reason}`;
  if (event !== 'fail') return applyEvent(tx, row, event, { end_reason: endReason });
  const newlyFailed = row.deliveredAt === null && row.failedMonth === null;
  const failedMonth = newlyFailed ? await currentMonth(tx) : row.failedMonth;
  const given = { end_reason: endReason, failed_month: sql`${failedMonth}::date` };
  const applied = await applyEvent(tx, row, 'fail', given);
  if (applied && newlyFailed && failedMonth !== null) await addToCount(tx, row, failedMonth, { failed: 1 });
  return applied;
}
