import { TEST_EVENT_TYPE, NOTIFICATION_STATUSES } from '../domain/notification-states';
import { z } from 'zod';
import {
  answered,
  answerSchema,
  applicationIdField,
  EVENT_TYPES,
  eventIdField,
  ID_PATTERNS,
  count,
  momentField,
  notificationIdField,
  sentMoment,
  successOf,
  text,
  textOrNull,
  wholeOrNull,
} from './fields';
import { applicationEventExamples, testEventExamples, testLenders } from './webhook-event';

const MOST_IN_PAGE = 100;
const DEFAULT_IN_PAGE = 25;

const sent = (form: RegExp, fault: string) => z.string().regex(form, fault);

const REFERENCE_FAULT = 'merchant_reference must be 1 to 64 letters, digits, spaces and . - _.';

export const listNotificationsQuerySchema = z
  .strictObject({
    event_id: sent(
      /^evt_[0-9A-HJKMNP-TV-Z]{26}$/,
      'event_id must be the id of an event, evt_ and 26 characters.',
    )
      .optional()
      .meta({
        description: 'That brought this event: at most one.',
        examples: ['evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9'],
      }),
    sequence: sent(/^[1-9]\d{0,8}$/, 'sequence must be a whole number from 1 on.')
      .transform(Number)
      .optional()
      .meta({
        description: 'At this position among the events of an application. Needs `credit_application_id`.',
        type: 'integer',
        pattern: undefined,
        minimum: 1,
        maximum: 999_999_999,
        examples: [3],
      }),
    status: z
      .enum(NOTIFICATION_STATUSES, `status must be one of ${NOTIFICATION_STATUSES.join(', ')}.`)
      .optional()
      .meta({ description: 'With this status now.' }),
    event_type: z
      .enum(EVENT_TYPES, 'event_type must be the type of an event, such as credit_application.accepted.')
      .optional()
      .meta({ description: 'Of this type.' }),
    credit_application_id: sent(
      new RegExp(`^${ID_PATTERNS.credit_application_id}$`),
      'credit_application_id must be the id of an application, app_ and 26 characters.',
    )
      .optional()
      .meta({ description: 'About this application.', examples: ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
    merchant_reference: sent(/^ *[A-Za-z0-9._-][A-Za-z0-9 ._-]*$/, REFERENCE_FAULT)
      .max(64, REFERENCE_FAULT)
      .transform((reference) => reference.trim())
      .optional()
      .meta({ description: 'About applications with this reference of yours.', examples: ['basket 2041'] }),
    created_from: sentMoment('created_from', 'Created at this moment or later.').optional(),
    created_to: sentMoment('created_to', 'Created before this moment.')
      .optional()
      .meta({ examples: ['2026-11-22T00:00:00Z'] }),
    limit: sent(/^([1-9]\d?|100)$/, `limit must be a whole number from 1 to ${MOST_IN_PAGE}.`)
      .transform(Number)
      .optional()
      .transform((limit) => limit ?? DEFAULT_IN_PAGE)
      .meta({
        description: `Most notifications in the page; ${DEFAULT_IN_PAGE} when omitted.`,
        type: 'integer',
        pattern: undefined,
        minimum: 1,
        maximum: MOST_IN_PAGE,
      }),
    cursor: sent(/^[A-Za-z0-9_-]{1,128}$/, 'cursor must be the next_cursor of a page.')
      .optional()
      .meta({
        description:
          'The `next_cursor` of the page before. It is good for the same partner, environment and filters only; `limit` may differ.',
      }),
  })
  .refine((query) => query.sequence === undefined || query.credit_application_id !== undefined, {
    message: 'sequence needs credit_application_id beside it.',
    path: ['sequence'],
  });

export type ListNotificationsQuery = z.output<typeof listNotificationsQuerySchema>;

/** Values of `reason` of a held or undelivered notification. Clients must accept others. */
export const notificationReasons = [
  'exhausted',
  'gone',
  'webhook_not_registered',
  'held_too_long',
  'monthly_limit',
  'cancelled',
  'internal_error',
] as const;

const attemptFields = {
  outcome: textOrNull(
    '`delivered`: your endpoint answered 2xx. `failed`: it did not. `unknown`: no answer is known, by a fault on our side. Null while it is under way.',
    'failed',
  ),
  http_status: wholeOrNull('What your endpoint answered; null without an answer.', 503),
  failure: textOrNull(
    'What went wrong: `http_status`, `redirect`, `gone`, `connect`, `timeout`, `tls`, `dns`, `reset`, `blocked_address` or `protocol`. Others may be added.',
    'http_status',
  ),
  duration_ms: z
    .int()
    .min(0)
    .nullable()
    .meta({ description: 'How long it took.', examples: [83] }),
} as const;

/** One for `last_attempt` and the log. Generators lose the nulls of a schema that another includes (`allOf`). */
const attemptSchema = z
  .object({
    number: z
      .int()
      .min(1)
      .optional()
      .meta({ description: '1, 2, 3 …, resends included. In `attempt_log` only.' }),
    at: momentField('When it began.'),
    finished_at: momentField('When it ended; null while it is under way. In `attempt_log` only.')
      .nullable()
      .optional(),
    ...attemptFields,
  })
  .meta({ id: 'Attempt', description: 'One POST to your endpoint.' });

/** One for a list and for reading one, for the same reason. */
const notificationSchema = z
  .object({
    notification_id: notificationIdField,
    event_id: eventIdField,
    event_type: text('Type of the event.', 'credit_application.accepted'),
    status: z.enum(NOTIFICATION_STATUSES).meta({
      description:
        '`pending`: no attempt has failed yet. `retrying`: one has, and another follows. `delivered`: your endpoint answered 2xx. `failed`: no attempt follows. `held`: it waits for an endpoint, 30 days at most. `expired`: it has waited for so long. `cancelled`: by us, at your request.',
    }),
    reason: textOrNull(
      'Why it is held, or has ended undelivered; else null. `exhausted`: every attempt has failed. `gone`: the endpoint answered 410. `webhook_not_registered`: there was no active endpoint. `held_too_long`: for 30 days there was none. `monthly_limit`: all tests of the month were used. `cancelled`: by us. `internal_error`: a fault on our side. Others may be added.',
      ...notificationReasons,
    ),
    created_at: momentField('When the event was made.'),
    credit_application_id: applicationIdField.nullable().meta({ description: 'Null for a test.' }),
    merchant_reference: textOrNull('The reference sent with the quote.', 'basket 2041'),
    sequence: wholeOrNull('Position among the events of the application; null for a test.', 3),
    attempts: count('How many attempts have begun, resends included.', 2),
    last_attempt: attemptSchema
      .nullable()
      .meta({ description: 'The last attempt that has ended; null when none has.' }),
    next_attempt_at: momentField(
      'When the next attempt is planned for, after one has failed. Null when none is, and while we have paused it.',
    ).nullable(),
    delivered_at: momentField('The first 2xx; null before.').nullable(),
    payload: textOrNull(
      'The body of the event as it is sent, byte for byte; null once it has been removed, its time of keeping being over. Not in a list.',
    ).optional(),
    attempt_log: z
      .array(attemptSchema)
      .optional()
      .meta({ description: 'Every attempt, oldest first. Not in a list.' }),
  })
  .meta({ id: 'Notification' });

export type NotificationItem = z.infer<typeof notificationSchema>;

const { value: event } = applicationEventExamples.accepted;
const at = '2026-11-21T12:00:00.180Z';
const refusedWith = { outcome: 'failed', http_status: 503, failure: 'http_status', duration_ms: 83 };
const notificationExample: NotificationItem = {
  notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
  event_id: event.event_id,
  event_type: event.event_type,
  status: 'retrying',
  reason: null,
  created_at: event.created_at,
  credit_application_id: event.data.credit_application_id,
  merchant_reference: event.data.merchant_reference,
  sequence: event.sequence,
  attempts: 1,
  last_attempt: { at, ...refusedWith },
  next_attempt_at: '2026-11-21T12:00:05.900Z',
  delivered_at: null,
};

export const notificationListSchema = answerSchema('NotificationListResponse', {
  notifications: z.array(notificationSchema).meta({ description: 'Newest first.' }),
  next_cursor: textOrNull(
    'Send it as `cursor` for the next page; null at the end. A page of several filters may be short, even empty, and still have one: go on until it is null.',
  ),
});

type NotificationListBody = z.infer<typeof notificationListSchema>;

export const notificationListExamples = {
  page: answered<NotificationListBody>('A page, and there is another', {
    notifications: [notificationExample],
    next_cursor: 'MDFLQUYxWjRRMFQ2TTVTN1kyVzNYNFY1QjkSNFZ4mrzeD_FGpXqL0eM',
  }),
};

export const notificationResponseSchema = successOf(notificationSchema).meta({ id: 'NotificationResponse' });

export type NotificationBody = z.infer<typeof notificationResponseSchema>;

export const notificationExamples = {
  retrying: answered<NotificationBody>('One that your endpoint has refused once', {
    ...notificationExample,
    payload: JSON.stringify(event),
    attempt_log: [{ number: 1, at, finished_at: '2026-11-21T12:00:00.263Z', ...refusedWith }],
  }),
};

export const resendResponseSchema = answerSchema('ResendResponse', {
  notification_id: notificationIdField,
  event_id: eventIdField.meta({ description: 'The same event id: a receiver that has it may drop it.' }),
  status: z.literal('pending').meta({ description: 'It waits for its first attempt of this round.' }),
});

type ResendBody = z.infer<typeof resendResponseSchema>;

export const resendExamples = {
  resent: answered<ResendBody>('It is sent again', {
    notification_id: notificationExample.notification_id,
    event_id: event.event_id,
    status: 'pending',
  }),
};

export const testNotificationQuerySchema = z.strictObject({
  lender: z.enum(testLenders, 'lender must be lender_a or lender_b.').optional().meta({
    description:
      'Whose sample reference the event carries: eight alphanumerics for `lender_a`, seven digits for `lender_b`. Without it the standard payload is sent.',
  }),
});

/** Values of `reason` of a failed test. Clients must accept others. */
export const testFailureReasons = [
  'gone',
  'webhook_not_registered',
  'monthly_limit',
  'exhausted',
  'cancelled',
  'internal_error',
] as const;

/** The answer of a test: 200 when it has ended, 202 while it has not. */
export const testNotificationResponseSchema = answerSchema('TestNotificationResponse', {
  notification_id: notificationIdField,
  event_id: eventIdField,
  event_type: z.literal(TEST_EVENT_TYPE).meta({ description: 'Type of the event.' }),
  environment: z
    .enum(['sandbox', 'live'])
    .meta({ description: 'The environment of the key, and so of the endpoint.' }),
  status: z.enum(['delivered', 'retrying', 'queued', 'failed']).meta({
    description:
      '`delivered`: the endpoint answered 2xx. `retrying`: the first attempt failed, two more follow within a minute. `queued`: no attempt has ended yet. `failed`: it has ended undelivered, and `reason` says why.',
  }),
  reason: textOrNull(
    'Why it has failed; null otherwise. `gone`: the endpoint answered 410 and is disabled now. `webhook_not_registered`: the endpoint was disabled or removed before it could be tried. `monthly_limit`: a new month began, and all its tests are used. `exhausted`: every attempt has failed. `cancelled`: by us. `internal_error`: a fault on our side. Others may be added.',
    ...testFailureReasons,
  ),
  attempt: z
    .object({
      http_status: wholeOrNull('What the endpoint answered; null when it gave no answer.', 200),
      duration_ms: count('How long that took.', 83),
    })
    .nullable()
    .meta({ description: 'The last attempt that has ended; null when none has.' }),
});

export type TestNotificationBody = z.infer<typeof testNotificationResponseSchema>;

const testNotification = (
  summary: string,
  status: TestNotificationBody['data']['status'],
  attempt: { readonly http_status: number | null; readonly duration_ms: number } | null,
) =>
  answered<TestNotificationBody>(summary, {
    notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    event_id: testEventExamples.standard.value.event_id,
    event_type: 'credit_application.test',
    environment: 'sandbox',
    status,
    reason: status === 'failed' ? 'gone' : null,
    attempt,
  });
const after = (duration_ms: number, http_status: number | null) => ({ http_status, duration_ms });

/** Of a test that has ended. */
export const endedTestExamples = {
  delivered: testNotification('Your endpoint answered 2xx', 'delivered', after(83, 200)),
  failed: testNotification(
    'Your endpoint answered 410 and is disabled; no other attempt follows',
    'failed',
    after(41, 410),
  ),
};

/** Of a test that has not. */
export const openTestExamples = {
  retrying: testNotification(
    'Your endpoint answered something else; two more attempts follow',
    'retrying',
    after(41, 500),
  ),
  unreachable: testNotification(
    'Your endpoint did not answer; two more attempts follow',
    'retrying',
    after(5_003, null),
  ),
  queued: testNotification('No attempt has ended yet', 'queued', null),
};
