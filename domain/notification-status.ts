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

/** What the status follows from; each is a column of the notification's row. */
export interface StatusFacts {
  readonly state: NotificationState;
  /** The first 2xx, ever. */
  readonly deliveredAt: unknown;
  /** Start of the first attempt of this generation. */
  readonly firstAttemptAt: unknown;
  /** Set until that attempt has ended. */
  readonly takenAt: unknown;
}

/**
 * The status of a notification: `pending` until an attempt of its generation has failed, then `retrying` until it ends. What was
 * delivered once and is not under way again is `delivered`, however a later resend ended. db/schema/notifications.ts says the
 * same in SQL, as pages go by an index of it.
 */
export function notificationStatus(facts: StatusFacts): NotificationStatus {
  const { state, deliveredAt, firstAttemptAt, takenAt } = facts;
  if (isOpen(state)) return firstAttemptAt !== null && takenAt === null ? 'retrying' : 'pending';
  return state !== 'held' && deliveredAt !== null ? 'delivered' : state;
}
