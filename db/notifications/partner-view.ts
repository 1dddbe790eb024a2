import type { NotificationStatus } from '../../domain/notification-status';
import { msText } from '../postgres/prepared';
import type { Notification } from './read';

/** An attempt as partners see it. Moments in Unix milliseconds. */
export interface ListedAttempt {
  readonly atMs: number;
  readonly outcome: string | null;
  readonly httpStatus: number | null;
  readonly failure: string | null;
  readonly durationMs: number | null;
}

/** A notification as partners see it in a list. Moments in Unix milliseconds. */
export interface Listed extends Pick<
  Notification,
  | 'notificationId'
  | 'eventId'
  | 'eventType'
  | 'endReason'
  | 'applicationId'
  | 'merchantReference'
  | 'sequence'
  | 'attempts'
> {
  readonly status: NotificationStatus;
  /** The last that has ended. */
  readonly lastAttempt: ListedAttempt | null;
  /** Null while it is paused. */
  readonly nextAttemptMs: number | null;
  readonly deliveredMs: number | null;
}

export interface ListedRow extends Omit<Listed, 'lastAttempt'> {
  readonly paused: boolean;
  /** JSON of a ListedAttempt. */
  readonly last: string | null;
}

/** Columns of a ListedRow from the notification `n`, but for its status, and the fields of a ListedAttempt from `a`. */
export const LISTED = `n.notification_id as "notificationId", n.event_id as "eventId", n.event_type as "eventType",
  n.end_reason as "endReason", n.application_id as "applicationId", n.merchant_reference as "merchantReference",
  n.sequence, n.attempts, ${msText('n.next_attempt_at')} as "nextAttemptMs", n.paused_at is not null as paused,
  ${msText('n.delivered_at')} as "deliveredMs"`;
export const ATTEMPT_JSON = `'atMs', ${msText('a.started_at')}, 'outcome', a.outcome, 'httpStatus', a.http_status,
  'failure', a.failure, 'durationMs', a.duration_ms`;

export function rowToListed(row: Omit<ListedRow, 'last'>, lastAttempt: ListedAttempt | null): Listed {
  const { paused, nextAttemptMs, ...same } = row;
  return { ...same, lastAttempt, nextAttemptMs: paused ? null : nextAttemptMs };
}
