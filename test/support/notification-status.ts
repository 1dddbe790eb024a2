import { isOpen, type NotificationState } from '../../domain/notification-states';
import type { NotificationStatus } from '../../domain/notification-status';

/** STATUS_SQL (db/schema/notifications.ts) once more, for tests to compare it with. */
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
