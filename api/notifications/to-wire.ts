import {
  notificationReasons,
  type NotificationBody,
  type NotificationItem,
} from '../../contracts/notifications';
import type { PartnerNotification, Listed, ListedAttempt } from '../../db/notifications/partner';
import { createdMs } from '../../db/notifications/notification';
import { shownReason } from './test-status';

/** Unix milliseconds as a moment of an answer. */
export const moment = (ms: number) => new Date(ms).toISOString();
const momentOrNull = (ms: number | null) => (ms === null ? null : moment(ms));

/** The id says when it was created: filters and pages go by it, so that what is shown and what is searched for agree. */
export function notificationToWire(one: Listed): NotificationItem {
  return {
    notification_id: one.notificationId,
    event_id: one.eventId,
    event_type: one.eventType,
    status: one.status,
    reason:
      one.status === 'delivered' || one.endReason === null
        ? null
        : shownReason(one.endReason, notificationReasons),
    created_at: moment(createdMs(one.notificationId)),
    credit_application_id: one.applicationId,
    merchant_reference: one.merchantReference,
    sequence: one.sequence,
    attempts: one.attempts,
    last_attempt: one.lastAttempt && { at: moment(one.lastAttempt.atMs), ...attemptToWire(one.lastAttempt) },
    next_attempt_at: momentOrNull(one.nextAttemptMs),
    delivered_at: momentOrNull(one.deliveredMs),
  };
}

export function notificationWithLog(one: PartnerNotification): NotificationBody['data'] {
  const { body, log } = one;
  return {
    ...notificationToWire(one),
    payload: body === '' ? null : body,
    attempt_log: log.map((attempt) => ({
      number: attempt.number,
      at: moment(attempt.atMs),
      finished_at: momentOrNull(attempt.finishedMs),
      ...attemptToWire(attempt),
    })),
  };
}

const attemptToWire = ({ outcome, httpStatus, failure, durationMs }: ListedAttempt) => ({
  outcome,
  http_status: httpStatus,
  failure,
  duration_ms: durationMs,
});
