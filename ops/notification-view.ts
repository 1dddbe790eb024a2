import type {
  AttemptSummary,
  DeliveryAttempt,
  ListedNotification,
  NotificationSummary,
  StoredNotification,
} from '../db/notifications/operator';
import type { DeliveryNow } from '../domain/delivery-now';
import { whyHeld } from '../domain/lateness';
import type { OpsDeps } from './call';
import { age, facts, listed, utcText, printable, snakeCased, type Answer } from './output';

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
  // Only while no worker has taken it: after that its workflow decides, not the row.
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

/** Address of its workflow in Temporal's page; null when no workflow has worked on it, or no page is known. */
export const storyOf = (one: NotificationSummary, { storyUrl }: OpsDeps) =>
  one.startedAt === null && one.attempts === 0 ? null : storyUrl(one);

export const listedView = (one: ListedNotification, now: DeliveryNow, story: string | null) => ({
  ...notificationView(one),
  now: nowView(now),
  last_outcome: one.lastOutcome,
  story,
});

const nowView = (now: DeliveryNow) => ({
  doing: now.doing,
  since: 'since' in now ? now.since : null,
  until: 'until' in now ? now.until : null,
  paused_by: 'by' in now ? now.by : null,
  waits_for: now.doing === 'waiting_for_earlier' ? now.notificationId : null,
});

/** What a delivery does now: in a few words for a list, and in a sentence for one. */
export function nowTexts(now: DeliveryNow, at: Date): readonly [brief: string, sentence: string] {
  const since = 'since' in now && now.since !== null ? now.since : null;
  const [days, when] = since === null ? ['', ''] : [` ${age(since, at)}`, ` since ${utcText(since)}`];
  switch (now.doing) {
    case 'ended': {
      const end = now.reason === null ? now.state : `${now.state}: ${now.reason}`;
      return [end, end + when];
    }
    case 'held': {
      const brief = `held${days}${now.reason === null ? '' : `: ${now.reason}`}`;
      return [brief, `held${when}: ${whyHeld(now.reason)}`];
    }
    case 'sending':
      return ['sending', `an attempt is under way${when}`];
    case 'paused': {
      const by = now.by === null ? '' : ` by ${now.by}`;
      return [`paused${days}${by}`, `paused${when}${by}: notifications resume continues it`];
    }
    case 'partner_paused':
      return [
        `partner paused${days} by ${now.by}`,
        `deliveries to its partner are paused${when} by ${now.by}: partners resume-deliveries continues them`,
      ];
    case 'waiting_for_attempt':
      return [`next attempt ${clock(now.until, at)}`, `waits for its next attempt at ${utcText(now.until)}`];
    case 'waiting_for_network':
      return [`no network${days}`, `waits: our network cannot reach anybody${when}`];
    case 'attempt_overdue':
      return [
        `attempt overdue${days}`,
        `its next attempt was due at ${utcText(now.since)} and has not begun: no worker runs, Temporal is away, or WEBHOOK_KEYS lacks its key; the log of the workers says which`,
      ];
    case 'starting':
      return ['starting', 'a worker has taken it, and its first attempt is about to begin'];
    case 'without_endpoint':
      return ['no endpoint', 'there is no active endpoint: it is held within seconds; a test fails'];
    case 'waiting_for_earlier': {
      const until = now.until === null ? '' : `, until ${utcText(now.until)} at the latest`;
      return [
        `after ${now.notificationId}`,
        `waits for the earlier event ${now.notificationId} of its application${until}`,
      ];
    }
    case 'not_started':
      return [
        'start fails',
        'its workflow cannot be started, which is tried again every few seconds; the log of the workers says why',
      ];
    case 'waiting_for_slot':
      return [
        `no free slot${days}`,
        `due${when}, over its endpoint's share: all slots of the endpoint are taken`,
      ];
    case 'put_back':
      return [
        `no free slot ${clock(now.until, at)}`,
        `found no free slot for long, so that it is queued until ${utcText(now.until)}: the slots of its endpoint, or of all workers, are taken`,
      ];
    case 'waiting_for_tests':
      return ['behind other tests', `due${when}, behind the tests of this endpoint that are under way`];
    case 'due':
      return [`due${days}`, `due${when}: the next worker takes it, within a second when one is running`];
  }
}

/** `14:05:12Z`, with the day when that is another one. */
function clock(moment: Date, at: Date): string {
  const [day = '', time = ''] = moment.toISOString().split('T');
  return `${at.toISOString().startsWith(day) ? '' : `${day.slice(5)} `}${time.slice(0, 8)}Z`;
}

/** `failed: http_status 503 in 35 ms`; an attempt without an end is under way. */
export function describeAttempt({ outcome, failure, httpStatus, durationMs }: AttemptSummary): string {
  if (outcome === null) return 'under way';
  if (outcome === 'unknown') return 'unknown: its process died';
  if (outcome === 'ours') return `a fault of ours, which does not count: ${failure}`;
  const what = [failure, httpStatus].filter((part) => part !== null).join(' ');
  return `${outcome}: ${what}${durationMs === null ? '' : ` in ${durationMs} ms`}`;
}

const attemptView = ({ notificationId: _, ...rest }: DeliveryAttempt) => snakeCased(rest);

export function notificationAnswer(
  one: StoredNotification,
  now: DeliveryNow,
  attempts: readonly DeliveryAttempt[],
  deps: OpsDeps,
  at: Date,
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
    answer === null || answer === '' ? [] : `\n\nAnswer to attempt ${attemptNumber}:\n${quoted(answer)}`,
  );
  const view = notificationView(one);
  const story = storyOf(one, deps);
  const answered =
    last === undefined
      ? 'none yet'
      : `attempt ${last.attemptNumber} at ${utcText(last.startedAt)}, ${describeAttempt(last)}`;
  return {
    json: {
      ...view,
      now: nowView(now),
      last_attempt: last === undefined ? null : attemptView(last),
      story,
      body: one.body,
      delivery_attempts: tried.json,
    },
    text: (most) =>
      [
        `Now: ${nowTexts(now, at)[1]}.\nLast answer: ${answered}.`,
        facts({ ...view, story }),
        `Body:\n${quoted(one.body)}`,
        `Attempts:\n${tried.text(most)}${answers.join('')}`,
      ].join('\n\n'),
  };
}

/** A partner's text, marked line by line, so that none of it looks like text of ours. */
const quoted = (text: string) =>
  text
    .split(/\r?\n/)
    .map((line) => `  | ${printable(line)}`)
    .join('\n');
