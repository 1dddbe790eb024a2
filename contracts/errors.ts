import { z } from 'zod';
import { APPLICATION_STATES } from '../domain/application-states';
import { text, whole } from './fields';

const fieldDetails = {
  field: text('Name of the field at fault (the first, where several are).'),
  fields: z.array(z.string()).meta({ description: 'MISSING_FIELD: every required field that is absent.' }),
};

const errorDetailsSchema = z
  .object({
    ...fieldDetails,
    provided_loan_amount: z.number().meta({ description: 'AMOUNT_TOO_LOW / AMOUNT_TOO_HIGH: pounds sent.' }),
    minimum_required: z.number().meta({ description: 'AMOUNT_TOO_LOW: lowest loan amount in pounds.' }),
    maximum_allowed: z.number().meta({ description: 'AMOUNT_TOO_HIGH: highest loan amount in pounds.' }),
    merchant_id: text('MERCHANT_NOT_FOUND / MERCHANT_CONFIGURATION_INCOMPLETE: the merchant.'),
    missing_fields: z
      .array(z.string())
      .meta({ description: 'MERCHANT_CONFIGURATION_INCOMPLETE: set-up that is missing.' }),
    environment: z.enum(['sandbox', 'live']).meta({
      description:
        'WEBHOOK_NOT_REGISTERED / RECOVERY_UNDER_WAY / TEST_NOTIFICATION_LIMIT_REACHED: that of the key.',
    }),
    reason: z.enum(['under_way', 'test', 'payload_removed']).meta({
      description:
        'NOTIFICATION_NOT_RESENDABLE: `under_way`, `test`, or `payload_removed`, its time of keeping being over.',
    }),
    recovery_id: text(
      'RECOVERY_UNDER_WAY: the one that is. Absent while another call of yours is being counted.',
    ),
    may_follow: z
      .array(z.enum(APPLICATION_STATES))
      .meta({ description: 'EVENT_NOT_APPLICABLE: the states that may follow now.' }),
    limit: whole('TEST_NOTIFICATION_LIMIT_REACHED: deliveries per month (UTC).'),
    delivered: whole('TEST_NOTIFICATION_LIMIT_REACHED: delivered in this month.'),
    in_progress: whole(
      'TEST_NOTIFICATION_LIMIT_REACHED: under way. Each counts against the limit until it has ended; one that fails no longer does.',
    ),
    month_ends_at: z.iso.datetime().meta({
      description:
        'TEST_NOTIFICATION_LIMIT_REACHED: end of the month, and so the beginning of the next, UTC.',
    }),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

export type ErrorDetails = z.infer<typeof errorDetailsSchema>;

/** Every `error.code` for partners, with its HTTP status. A new one changes the contract. */
export const ERROR_STATUSES = {
  INVALID_REQUEST: 400,
  MISSING_FIELD: 400,
  INVALID_AMOUNT_FORMAT: 400,
  UNAUTHENTICATED: 401,
  MERCHANT_NOT_FOUND: 404,
  NOT_FOUND: 404,
  AMOUNT_TOO_LOW: 422,
  AMOUNT_TOO_HIGH: 422,
  NOTIFICATION_NOT_FOUND: 404,
  RECOVERY_NOT_FOUND: 404,
  APPLICATION_NOT_FOUND: 404,
  QUOTE_NOT_FOUND: 404,
  PRODUCT_NOT_QUOTED: 404,
  SIMULATION_LIMIT_REACHED: 409,
  EVENT_NOT_APPLICABLE: 409,
  WEBHOOK_NOT_REGISTERED: 409,
  NOTIFICATION_NOT_RESENDABLE: 409,
  RECOVERY_UNDER_WAY: 409,
  RECOVERY_DISABLED: 409,
  RATE_LIMIT_EXCEEDED: 429,
  TEST_NOTIFICATION_LIMIT_REACHED: 429,
  INTERNAL_SERVER_ERROR: 500,
  MERCHANT_CONFIGURATION_INCOMPLETE: 500,
} as const;
export type ErrorCode = keyof typeof ERROR_STATUSES;

const errorBodySchema = <Code extends string, Details extends z.ZodType>(
  statuses: Readonly<Record<Code, number>>,
  details: Details,
) =>
  z
    .object({
      success: z.literal(false).meta({ description: 'Always false.' }),
      error: z.object({
        code: z.enum(Object.keys(statuses) as Code[]).meta({ description: 'Stable; branch on this.' }),
        message: text('For people; may be reworded.'),
        details: details.optional(),
      }),
    })
    .meta({ id: 'ApiError', description: 'Every error has this form.' });

export const errorSchema = errorBodySchema(ERROR_STATUSES, errorDetailsSchema);

export type ErrorBody = z.infer<typeof errorSchema>;

/** Every `error.code` of the internal listener, with its HTTP status. */
export const INTERNAL_ERROR_STATUSES = {
  INVALID_REQUEST: 400,
  MISSING_FIELD: 400,
  INVALID_AMOUNT_FORMAT: 400,
  QUOTE_ID_MISMATCH: 400,
  INVALID_LENDER_REFERENCE: 400,
  UNAUTHENTICATED: 401,
  NOT_FOUND: 404,
  LENDER_NOT_FOUND: 404,
  QUOTE_NOT_FOUND: 404,
  PRODUCT_NOT_QUOTED: 404,
  APPLICATION_NOT_FOUND: 404,
  APPLICATION_EXISTS: 409,
  LENDER_EVENT_EXISTS: 409,
  AMOUNTS_NOT_QUOTED: 422,
  MERCHANT_REFERENCE_MISMATCH: 422,
  RATE_LIMIT_EXCEEDED: 429,
  INTERNAL_SERVER_ERROR: 500,
} as const;
export type InternalErrorCode = keyof typeof INTERNAL_ERROR_STATUSES;

const internalErrorDetailsSchema = z
  .object({
    ...fieldDetails,
    credit_application_id: text('APPLICATION_EXISTS: what the reference stands for.'),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

export type InternalErrorDetails = z.infer<typeof internalErrorDetailsSchema>;

export const internalErrorSchema = errorBodySchema(INTERNAL_ERROR_STATUSES, internalErrorDetailsSchema);

export type AnyErrorBody = ErrorBody | z.infer<typeof internalErrorSchema>;
