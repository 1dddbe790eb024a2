import { z } from 'zod';
import { answerSchema } from './answer';
import { count, textOrNull, wholeOrNull } from './partner-fields';
import { queryValidator } from './validate';
import { TEST_EVENT_TYPE } from './webhook-event';

/** Lenders whose sample reference a test notification can carry. */
export const testLenders = ['lender_a', 'lender_b'] as const;
export type TestLender = (typeof testLenders)[number];

/** The query of `POST /v1/notifications/test`. */
export const testNotificationQuerySchema = z.strictObject({
  lender: z.enum(testLenders, 'lender must be lender_a or lender_b.').optional().meta({
    description:
      'Whose sample reference the event carries: eight alphanumerics for `lender_a`, seven digits for `lender_b`. Without it the standard payload is sent.',
  }),
});

export const readTestQuery = queryValidator(testNotificationQuerySchema);

/** Why a test has failed at once, as `data.reason` says it. Open: clients must live with others. */
export const testFailureReasons = [
  'gone',
  'webhook_not_registered',
  'monthly_limit',
  'exhausted',
  'cancelled',
  'internal_error',
] as const;
export type TestFailureReason = (typeof testFailureReasons)[number];

/** The answer of `POST /v1/notifications/test`: 200 when the test has ended, delivered or failed; 202 while it has not. */
export const testNotificationResponseSchema = answerSchema('TestNotificationResponse', {
  notification_id: z.string().meta({ examples: ['ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
  event_id: z.string().meta({
    description: 'The `event_id` of the event and its header `webhook-id`.',
    examples: ['evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'],
  }),
  event_type: z.literal(TEST_EVENT_TYPE),
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
