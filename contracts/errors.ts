import { z } from 'zod';
import { text, whole } from './fields';

/** Of an error in the body. */
const fieldDetails = {
  field: text('Name of the field at fault (the first, where several are).'),
  fields: z.array(z.string()).meta({ description: 'MISSING_FIELD: every required field that is absent.' }),
};

/** The values involved in an error; which of them are there depends on the code. */
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
    recovery_id: text('RECOVERY_UNDER_WAY: the one that is.'),
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

/** Every `error.code` partners can meet. Closed: a new one is a change of the contract. */
export const errorCodes = [
  'INVALID_REQUEST',
  'MISSING_FIELD',
  'INVALID_AMOUNT_FORMAT',
  'UNAUTHENTICATED',
  'MERCHANT_NOT_FOUND',
  'NOT_FOUND',
  'AMOUNT_TOO_LOW',
  'AMOUNT_TOO_HIGH',
  'NOTIFICATION_NOT_FOUND',
  'RECOVERY_NOT_FOUND',
  'APPLICATION_NOT_FOUND',
  'WEBHOOK_NOT_REGISTERED',
  'NOTIFICATION_NOT_RESENDABLE',
  'RECOVERY_UNDER_WAY',
  'RECOVERY_DISABLED',
  'RATE_LIMIT_EXCEEDED',
  'TEST_NOTIFICATION_LIMIT_REACHED',
  'INTERNAL_SERVER_ERROR',
  'MERCHANT_CONFIGURATION_INCOMPLETE',
] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** The form of every error, with the codes and details of a contract. */
const errorBodySchema = <Code extends string, Details extends z.ZodType>(
  codes: readonly Code[],
  details: Details,
) =>
  z
    .object({
      success: z.literal(false),
      error: z.object({
        code: z.enum(codes).meta({ description: 'Stable; branch on this.' }),
        message: text('For people; may be reworded.'),
        details: details.optional(),
      }),
    })
    .meta({ id: 'Error', description: 'Every error has this form.' });

export const errorSchema = errorBodySchema(errorCodes, errorDetailsSchema);

export type ErrorBody = z.infer<typeof errorSchema>;

/** Every `error.code` of the internal listener. Closed: a new one is a change of its contract. */
const internalErrorCodes = [
  'INVALID_REQUEST',
  'MISSING_FIELD',
  'INVALID_AMOUNT_FORMAT',
  'QUOTE_ID_MISMATCH',
  'INVALID_LENDER_REFERENCE',
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'LENDER_NOT_FOUND',
  'QUOTE_NOT_FOUND',
  'PRODUCT_NOT_QUOTED',
  'APPLICATION_NOT_FOUND',
  'APPLICATION_EXISTS',
  'LENDER_EVENT_EXISTS',
  'AMOUNTS_NOT_QUOTED',
  'MERCHANT_REFERENCE_MISMATCH',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_SERVER_ERROR',
] as const;
export type InternalErrorCode = (typeof internalErrorCodes)[number];

const internalErrorDetailsSchema = z
  .object({
    ...fieldDetails,
    credit_application_id: text('APPLICATION_EXISTS: what the reference stands for.'),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

export type InternalErrorDetails = z.infer<typeof internalErrorDetailsSchema>;

export const internalErrorSchema = errorBodySchema(internalErrorCodes, internalErrorDetailsSchema);

export type AnyErrorBody = ErrorBody | z.infer<typeof internalErrorSchema>;
