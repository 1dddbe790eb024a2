import type { DeliveryState, EndState, NotificationStatus } from '../../domain/notification-states';

/** deliveryStatus and endedStatus (db/schema) once more, for tests to compare them with. */
export function notificationStatus(
  row:
    | { readonly state: DeliveryState; readonly step: number }
    | { readonly state: EndState; readonly deliveredAt: unknown },
): NotificationStatus {
  if (!('step' in row)) return row.deliveredAt === null ? row.state : 'delivered';
  if (row.state === 'held') return 'held';
  return row.step > 0 ? 'retrying' : 'pending';
}
