import { eq, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { notifications } from '../schema';
import { hastenLater } from './application-order';
import { lockNotification, type NotificationState } from './read';
import { closeUnfinished } from './open-attempt';
import { ATTEMPTS_CHANNEL } from './record-attempt';
import { Refused } from '../refused';
import { releaseMonth } from './quota';

export type CancelAnswer =
  | { readonly kind: 'cancelled'; readonly was: NotificationState }
  /** Its workflow has to be told; nothing was changed. */
  | { readonly kind: 'under_way'; readonly generation: number };

/**
 * Cancels a notification that no workflow works on, under its row lock: a workflow that starts all the same finds it
 * ended. A test gives its place in the month back.
 * @param deadGeneration a generation whose workflow is known to be gone: under way by name only.
 * @throws Refused when there is no such notification, or it has ended.
 */
export async function cancelNotification(
  tx: DbOrTransaction,
  notificationId: string,
  deadGeneration: number | null = null,
): Promise<CancelAnswer> {
  const row = await lockNotification(tx, notificationId);
  if (row === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  const { state, generation, reservedMonth } = row;
  if (state === 'started' && generation !== deadGeneration) return { kind: 'under_way', generation };
  if (state !== 'pending' && state !== 'held' && state !== 'started') {
    throw new Refused('conflict', `Notification ${notificationId} has ended already: ${state}.`);
  }
  if (reservedMonth !== null) await releaseMonth(tx, row, reservedMonth);
  await closeUnfinished(tx, notificationId);
  await tx
    .update(notifications)
    .set({ state: 'cancelled', endReason: 'operator', reservedMonth: null, endedAt: sql`service_now()` })
    .where(eq(notifications.notificationId, notificationId));
  await hastenLater(tx, row);
  await tx.execute(sql`select pg_notify(${ATTEMPTS_CHANNEL}, ${`${notificationId}:0`})`);
  return { kind: 'cancelled', was: state };
}
