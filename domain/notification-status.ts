/**
 * What partners see of a notification's state: `pending` until an attempt of its generation has failed, then `retrying`
 * until it ends. What was delivered once and is not under way again is `delivered`, however a later resend ended.
 * db/schema/notifications.ts says it in SQL.
 */
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
