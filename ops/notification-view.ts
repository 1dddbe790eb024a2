import type {
  AttemptSummary,
  DeliveryAttempt,
  ListedNotification,
  NotificationSummary,
  StoredNotification,
} from '../db/notifications/operator';
import type { DeliveryNow } from '../domain/delivery-now';
import type { OpsDeps } from './call';
import { nowText, nowView } from './delivery-now-text';
import { facts, listed, moment, printable, snakeCased, withTables, type Answer } from './output';

const notificationView = (one: NotificationSummary) => ({
  notification_id: one.notificationId,
  event_id: one.eventId,
  event_type: one.eventType,
  partner_id: one.partnerId,
  environment: one.environment,
  application_id: one.applicationId,
  merchant_reference: one.merchantReference,
  sequence: one.sequence,
  state: one.state,
  end_reason: one.endReason,
  generation: one.generation,
  attempts: one.attempts,
  created_at: one.createdAt,
  // Only while no worker has taken it: after that its workflow counts, not the row.
  due_at: one.state === 'queued' ? one.dueAt : null,
  started_at: one.startedAt,
  next_attempt_at: one.nextAttemptAt,
  paused_at: one.pausedAt,
  held_at: one.heldAt,
  delivered_at: one.deliveredAt,
  ended_at: one.endedAt,
  reserved_month: one.reservedMonth,
  request_id: one.requestId,
});

/** Where a delivery's story is read; what no workflow has worked on has none. */
export type StoryOf = (one: NotificationSummary) => string | null;

export const storyOf =
  (storyUrl: OpsDeps['storyUrl']): StoryOf =>
  (one) =>
    one.startedAt === null && one.attempts === 0 ? null : storyUrl(one);

export const listedView = (one: ListedNotification, now: DeliveryNow, story: StoryOf) => ({
  ...notificationView(one),
  now: nowView(now),
  last_outcome: one.lastOutcome,
  story: story(one),
});

/** `failed: http_status 503 in 35 ms`; an attempt without an end is under way. */
export function describeAttempt({ outcome, failure, httpStatus, durationMs }: AttemptSummary): string {
  if (outcome === null) return 'under way';
  if (outcome === 'unknown') return 'unknown: its process died';
  const what = [failure, httpStatus].filter((part) => part !== null).join(' ');
  return `${outcome}: ${what}${durationMs === null ? '' : ` in ${durationMs} ms`}`;
}

function attemptView(one: DeliveryAttempt) {
  const { notification_id: _, ...rest } = snakeCased(one);
  return rest;
}

/** A notification with its body and all of its attempts. */
export function notificationAnswer(
  one: StoredNotification,
  now: DeliveryNow,
  attempts: readonly DeliveryAttempt[],
  story: StoryOf,
): Answer {
  const last = attempts.findLast(({ finishedAt }) => finishedAt !== null);
  const tried = listed(attempts, attemptView, {
    attempt: 'attempt_number',
    started: 'started_at',
    outcome: ({ outcome }) => outcome ?? 'under way',
    status: 'http_status',
    ms: 'duration_ms',
    failure: 'failure',
    address: 'address',
    'retry after': ({ retryAfterMs }) =>
      retryAfterMs === null ? null : `${Math.round(retryAfterMs / 1_000)} s`,
  });
  const answers = attempts.flatMap(({ attemptNumber, answer }) =>
    answer === null || answer === '' ? [] : ['', `Answer to attempt ${attemptNumber}:`, quoted(answer)],
  );
  return {
    json: {
      ...notificationView(one),
      now: nowView(now),
      last_attempt: last === undefined ? null : attemptView(last),
      story: story(one),
      body: one.body,
      delivery_attempts: tried.json,
    },
    ...withTables((textOf) =>
      [
        `Now: ${nowText(now)}.`,
        `Last answer: ${last === undefined ? 'none yet' : `attempt ${last.attemptNumber} at ${moment(last.startedAt)}, ${describeAttempt(last)}`}.`,
        '',
        facts(Object.entries({ ...notificationView(one), story: story(one) })),
        '',
        'Body:',
        quoted(one.body),
        '',
        'Attempts:',
        textOf(tried),
        ...answers,
      ].join('\n'),
    ),
  };
}

/** A stranger's text, line by line, so that none of it passes for ours. */
const quoted = (text: string) =>
  text
    .split(/\r?\n/)
    .map((line) => `  | ${printable(line)}`)
    .join('\n');
