import { isOpen, type NotificationState } from './notification-states';

/** What partners see of a notification's state (design §11). */
export const NOTIFICATION_STATUSES = [
  'pending',
  'retrying',
  'delivered',
  'failed',
  'held',
  'cancelled',
  'expired',
] as const;

export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

/**
 * The status of a notification: `pending` until an attempt of its generation has failed, then `retrying` until it ends.
 * What was delivered once and is not under way again is `delivered`, however a later resend ended.
 * db/schema/notifications.ts says the same in SQL.
 */
export function notificationStatus(row: {
  readonly state: NotificationState;
  readonly deliveredAt: unknown;
  readonly firstAttemptAt: unknown;
  readonly takenAt: unknown;
}): NotificationStatus {
  const { state, deliveredAt, firstAttemptAt, takenAt } = row;
  if (isOpen(state)) return firstAttemptAt !== null && takenAt === null ? 'retrying' : 'pending';
  return state !== 'held' && deliveredAt !== null ? 'delivered' : state;
}
