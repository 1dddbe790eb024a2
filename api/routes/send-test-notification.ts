import {
  endedTestExamples,
  openTestExamples,
  testFailureReasons,
  testNotificationQuerySchema,
  testNotificationResponseSchema,
  type TestNotificationBody,
} from '../../contracts/notifications';
import { testEvent } from '../../contracts/webhook-event';
import type { NotificationProgress } from '../../db/notifications/notification';
import { TEST_LIMIT_PER_MONTH, TestLimitReached } from '../../db/notifications/quota';
import { Refused } from '../../db/refused';
import { isOpen, TEST_EVENT_TYPE } from '../../domain/notification-states';
import { newEventId, newNotificationId } from '../../runtime/ids';
import { answerer } from '../answers';
import type { AttemptWatch } from '../attempt-watch';
import type { Caller } from '../checks';
import { refused, type ApiError } from '../errors';
import type { ApiMetrics } from '../observe';
import { operation } from '../operation';
import type { WithQueries } from '../queries';

/** A first attempt takes at most 20 s. A caller can be asked to wait for ten. */
const WAIT_MS = 10_000;
// The message about an attempt may be lost, so the row is read again after this time.
const LOOK_EVERY_MS = 1_000;
/** A test under way may fail at any time, and then no longer counts. */
const RETRY_WHILE_UNDER_WAY_SECONDS = 60;

export interface SendTestNotificationDeps extends WithQueries {
  readonly attempts: AttemptWatch;
  readonly metrics: Pick<ApiMetrics, 'testLimitRefused'>;
}

/** Writes a row and waits for its first attempt. Without Temporal the answer is 202 `queued`. */
export const sendTestNotification = operation({
  call: 'POST /v1/notifications/test',
  id: 'sendTestNotification',
  tag: 'Notifications',
  summary: 'Send a test notification',
  description:
    'Sends a signed `credit_application.test` event to the endpoint that is registered for the environment of the key, and ' +
    'waits up to 10 seconds for what comes of the first attempt. Send no body. 100 deliveries are allowed per environment ' +
    'and month (UTC); one that is under way counts until it has ended. Set your timeout to 15 seconds or more.',
  query: testNotificationQuerySchema,
  answers: {
    200: [
      'The test has ended: `delivered`, your endpoint answered 2xx, or `failed`, and `data.reason` says why.',
      testNotificationResponseSchema,
      endedTestExamples,
    ],
    202: [
      'Not delivered yet; `data.status` and `data.attempt` say why. It is tried three times within a minute.',
      testNotificationResponseSchema,
      openTestExamples,
    ],
  },
  codes: ['WEBHOOK_NOT_REGISTERED', 'TEST_NOTIFICATION_LIMIT_REACHED'],
  wrong: [{ lender: 'lender_c' }],
  handler: ({ queries, attempts, metrics }: SendTestNotificationDeps) => {
    const sendAnswer = answerer(testNotificationResponseSchema);
    return async (request, reply) => {
      const { environment, partnerId } = request.caller;
      const at = new Date();
      const notificationId = newNotificationId(at);
      const eventId = newEventId(at);
      const event = testEvent({ eventId, environment, createdAt: at, lender: request.query.lender ?? null });
      const ids = { notificationId, eventId, eventType: TEST_EVENT_TYPE, partnerId, environment };
      const subscription = attempts.subscribe(notificationId);
      try {
        const wanted = { ...ids, body: JSON.stringify(event), requestId: request.id };
        await queries.storeTest(wanted).catch((error: unknown) => {
          if (error instanceof TestLimitReached) {
            metrics.testLimitRefused.inc({ environment });
            const { delivered, secondsToMonthEnd } = error.use;
            const isOver = delivered >= TEST_LIMIT_PER_MONTH;
            void reply.header('Retry-After', isOver ? secondsToMonthEnd : RETRY_WHILE_UNDER_WAY_SECONDS);
          }
          throw error instanceof Refused ? refusalOf(error, environment) : error;
        });
        const progress = await firstAttempt();
        const status = testStatus(progress);
        const attempt = progress?.attempt ?? null;
        const data = {
          notification_id: notificationId,
          event_id: eventId,
          event_type: TEST_EVENT_TYPE,
          environment,
          status,
          reason: status === 'failed' ? shownReason(progress?.endReason, testFailureReasons) : null,
          attempt: attempt && { http_status: attempt.httpStatus, duration_ms: attempt.durationMs },
        } as const;
        return await sendAnswer(reply, data, status === 'delivered' || status === 'failed' ? 200 : 202);
      } finally {
        subscription.end();
      }

      /** Waits for the end of the first attempt, unless none can begin; null without Postgres. */
      async function firstAttempt(): Promise<NotificationProgress | null> {
        const endsAtMs = performance.now() + WAIT_MS;
        for (;;) {
          const progress = await queries
            .readProgress(notificationId, request.caller)
            .catch((error: unknown) => {
              const about = { requestId: request.id, err: error, notificationId };
              request.log.warn(about, 'a test notification was not read again');
              return null;
            });
          const leftMs = endsAtMs - performance.now();
          if (testStatus(progress) !== 'queued' || leftMs <= 0 || progress?.paused || subscription.delayed())
            return progress;
          await subscription.next(Math.min(leftMs, LOOK_EVERY_MS));
        }
      }
    };
  },
});

function refusalOf(error: Refused, environment: Caller['environment']): ApiError {
  if (!(error instanceof TestLimitReached)) return refused('WEBHOOK_NOT_REGISTERED', environment);
  const { delivered, reserved, monthEndsAt } = error.use;
  return refused('TEST_NOTIFICATION_LIMIT_REACHED', {
    environment,
    limit: TEST_LIMIT_PER_MONTH,
    delivered,
    in_progress: reserved,
    month_ends_at: monthEndsAt.toISOString(),
  });
}

function testStatus(progress: NotificationProgress | null): TestNotificationBody['data']['status'] {
  if (progress === null) return 'queued';
  if (progress.state === 'delivered') return 'delivered';
  if (isOpen(progress.state)) return progress.attempt ? 'retrying' : 'queued';
  return 'failed';
}

/** The reason of a notification's end as partners see it. Unknown ones are our own faults. */
export function shownReason(endReason: string | null | undefined, known: readonly string[]): string {
  if (endReason === 'operator' || endReason === 'workflow_cancelled') return 'cancelled';
  if (endReason?.startsWith('endpoint_')) return 'webhook_not_registered';
  return known.find((reason) => reason === endReason) ?? 'internal_error';
}
