import type { FastifyInstance } from 'fastify';
import {
  readTestQuery,
  testFailureReasons,
  testNotificationResponseSchema,
  type TestNotificationBody,
} from '../../contracts/notifications';
import { type TestLender, testEvent } from '../../contracts/webhook-event';
import type { NotificationProgress } from '../../db/notifications/notification';
import type { NewTestNotification } from '../../db/notifications/create';
import { TEST_LIMIT_PER_MONTH, TestLimitReached } from '../../db/notifications/quota';
import { Refused } from '../../db/refused';
import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import type { Caller } from '../checks';
import { ApiError, notRegistered } from '../errors';
import { answerer } from '../answers';

/** A first attempt takes at most 20 s; ten are what a caller can be asked to wait. */
const WAIT_MS = 10_000;
/** Word of the attempt is a hint, which may be lost: then the row is found to have changed this much later at most. */
const LOOK_EVERY_MS = 1_000;

interface TestQuery {
  Querystring: { readonly lender?: TestLender };
}

const options = { config: { readQuery: readTestQuery } };

export interface SendTestNotificationDeps {
  /** Reserves a unit of the month's quota and stores the notification, in one statement. @throws Refused */
  readonly storeTest: (notification: NewTestNotification) => Promise<void>;
  readonly readProgress: (notificationId: string) => Promise<NotificationProgress | null>;
  readonly attempts: AttemptWatch;
  readonly now: () => Date;
  /** `ntf_` and a ULID of the moment. */
  readonly newNotificationId: (at: Date) => string;
  /** `evt_` and a ULID of the moment. */
  readonly newEventId: (at: Date) => string;
}

/**
 * `POST /v1/notifications/test`. The API only writes a row and waits for what becomes of it: without
 * Temporal it answers 202 `queued`, and the event is sent once there is one.
 */
export function sendTestNotification(app: FastifyInstance, deps: SendTestNotificationDeps): void {
  const sendAnswer = answerer(testNotificationResponseSchema);

  app.post<TestQuery>('/v1/notifications/test', options, async (request, reply) => {
    const { caller } = request;
    const { lender = null } = request.query;
    const at = deps.now();
    const notificationId = deps.newNotificationId(at);
    const eventId = deps.newEventId(at);
    const { environment, partnerId } = caller;
    const event = testEvent({ eventId, environment, createdAt: at, lender });
    const subscription = deps.attempts.subscribe(notificationId);
    try {
      const body = JSON.stringify(event);
      const eventType = TEST_EVENT_TYPE;
      await deps
        .storeTest({
          notificationId,
          eventId,
          eventType,
          partnerId,
          environment,
          body,
          requestId: request.id,
        })
        .catch((error: unknown) => {
          if (error instanceof TestLimitReached) {
            const { delivered, secondsToMonthEnd } = error.use;
            const seconds =
              delivered >= TEST_LIMIT_PER_MONTH ? secondsToMonthEnd : RETRY_WHILE_UNDER_WAY_SECONDS;
            void reply.header('Retry-After', String(seconds));
          }
          throw error instanceof Refused ? refusal(error, caller) : error;
        });
      const { status, reason, attempt } = await firstWord();
      const ended = status === 'delivered' || status === 'failed';
      const data = {
        notification_id: notificationId,
        event_id: eventId,
        event_type: TEST_EVENT_TYPE,
        environment,
        status,
        reason,
        attempt: attempt && { http_status: attempt.httpStatus, duration_ms: attempt.durationMs },
      } as const;
      return await sendAnswer(reply, data, ended ? 200 : 202);
    } finally {
      subscription.end();
    }

    /** Waits for the end of the first attempt, unless none can begin. A database that is away by then changes nothing: it is queued. */
    async function firstWord() {
      const endsAtMs = performance.now() + WAIT_MS;
      for (;;) {
        const progress = await deps.readProgress(notificationId).catch((error: unknown) => {
          request.log.warn(
            { requestId: request.id, err: error, notificationId },
            'a test notification was not read again',
          );
          return null;
        });
        const status = testStatus(progress);
        const leftMs = endsAtMs - performance.now();
        if (status !== 'queued' || leftMs <= 0 || subscription.delayed())
          return {
            status,
            reason: status === 'failed' ? shownReason(progress?.endReason, testFailureReasons) : null,
            attempt: progress?.attempt ?? null,
          };
        await subscription.next(Math.min(leftMs, LOOK_EVERY_MS));
      }
    }
  });
}

/** One that is under way may fail at any time, and then no longer counts. */
const RETRY_WHILE_UNDER_WAY_SECONDS = 60;

function refusal(refused: Refused, { environment }: Caller): ApiError {
  if (!(refused instanceof TestLimitReached)) return notRegistered(environment);
  const limit = TEST_LIMIT_PER_MONTH;
  const { delivered, reserved, monthEndsAt } = refused.use;
  return new ApiError(
    'TEST_NOTIFICATION_LIMIT_REACHED',
    `All ${limit} test notifications of this month are delivered or under way in the ${environment} environment.`,
    { environment, limit, delivered, in_progress: reserved, month_ends_at: monthEndsAt.toISOString() },
  );
}

/** What a partner is told of where its test stands; null when that is not known. */
export function testStatus(progress: NotificationProgress | null): TestNotificationBody['data']['status'] {
  switch (progress?.state) {
    case undefined:
      return 'queued';
    case 'delivered':
      return 'delivered';
    case 'queued':
    case 'started':
      return progress?.attempt ? 'retrying' : 'queued';
    case 'held':
    case 'failed':
    case 'cancelled':
    case 'expired':
      return 'failed';
  }
}

/** What a partner is told of the reason that a notification ended with. What it cannot know of is a fault of ours. */
export function shownReason(endReason: string | null | undefined, known: readonly string[]): string {
  if (endReason === 'operator' || endReason === 'workflow_cancelled') return 'cancelled';
  if (endReason?.startsWith('endpoint_')) return 'webhook_not_registered';
  return known.find((reason) => reason === endReason) ?? 'internal_error';
}

/** Lets a request wait for word of its notification; the word comes from Postgres (channel `attempts`). */
export interface AttemptWatch {
  /** Begins to listen for one notification. Call it before the commit, or its word may come too early. */
  subscribe(notificationId: string): AttemptSubscription;
  /** Word has come: `<notification id>` after an attempt, `<notification id>:delayed` when none can begin. */
  heard(payload: string): void;
  /** The connection was new: word may have been missed, so everybody looks again. */
  lookAgain(): void;
}

interface AttemptSubscription {
  /** Resolves at the next word, or after `ms` milliseconds. Word that came before it was called counts. */
  next(ms: number): Promise<void>;
  /** Whether the dispatcher has said that the first attempt cannot begin for now: Temporal is away. */
  delayed(): boolean;
  end(): void;
}

/** In memory: each process waits for its own requests only. */
export function createAttemptWatch(): AttemptWatch {
  const waiting = new Map<string, (word: string) => void>();
  return {
    subscribe(notificationId) {
      let word = false;
      let delayed = false;
      let wake: () => void = () => undefined;
      waiting.set(notificationId, (what) => {
        word = true;
        delayed = what === 'delayed';
        wake();
      });
      return {
        next: (ms) =>
          new Promise((resolve) => {
            const timer = setTimeout(resolve, word ? 0 : ms);
            word = false;
            wake = () => (clearTimeout(timer), resolve());
          }),
        delayed: () => delayed,
        end: () => void waiting.delete(notificationId),
      };
    },
    heard: (payload) => {
      const [notificationId = '', word = ''] = payload.split(':');
      waiting.get(notificationId)?.(word);
    },
    lookAgain: () => waiting.forEach((tell) => tell('look')),
  };
}
