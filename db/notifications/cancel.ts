import type { DbOrTransaction } from '../postgres/connect';
import type { NotificationState } from '../../domain/notification-states';
import { lockNotification } from './read';
import { tellCaller } from './record-attempt';
import { Refused } from '../refused';
import { applyEnd } from './transition';

type CancelAnswer =
  | { readonly kind: 'cancelled'; readonly was: NotificationState; readonly partnerId: string }
  /** Its workflow has to be told; nothing was changed. */
  | { readonly kind: 'under_way'; readonly generation: number; readonly partnerId: string };

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
  const { state, generation, partnerId } = row;
  if (state === 'started' && generation !== deadGeneration)
    return { kind: 'under_way', generation, partnerId };
  if (state !== 'pending' && state !== 'held' && state !== 'started') {
    throw new Refused('conflict', `Notification ${notificationId} has ended already: ${state}.`);
  }
  await applyEnd(tx, row, 'cancel', 'operator');
  tellCaller(tx, row);
  return { kind: 'cancelled', was: state, partnerId };
}
