import { z } from 'zod';

/** Every `error.code` partners can meet (spec §7.4, §7.5). Closed: a new one is a change of the contract. */
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

/** Of an error in the body. */
export const fieldDetails = {
  field: z.string().meta({ description: 'Name of the field at fault (the first, where several are).' }),
  fields: z.array(z.string()).meta({ description: 'MISSING_FIELD: every required field that is absent.' }),
};

/** The values involved in an error; which of them are there depends on the code. */
const errorDetailsSchema = z
  .object({
    ...fieldDetails,
    provided_loan_amount: z.number().meta({ description: 'AMOUNT_TOO_LOW / AMOUNT_TOO_HIGH: pounds sent.' }),
    minimum_required: z.number().meta({ description: 'AMOUNT_TOO_LOW: lowest loan amount in pounds.' }),
    maximum_allowed: z.number().meta({ description: 'AMOUNT_TOO_HIGH: highest loan amount in pounds.' }),
    merchant_id: z.string().meta({ description: 'MERCHANT_CONFIGURATION_INCOMPLETE: the merchant.' }),
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
    recovery_id: z.string().meta({ description: 'RECOVERY_UNDER_WAY: the one that is.' }),
    limit: z.int().meta({ description: 'TEST_NOTIFICATION_LIMIT_REACHED: deliveries per month (UTC).' }),
    delivered: z.int().meta({ description: 'TEST_NOTIFICATION_LIMIT_REACHED: delivered in this month.' }),
    in_progress: z.int().meta({
      description:
        'TEST_NOTIFICATION_LIMIT_REACHED: under way. Each counts against the limit until it has ended; one that fails no longer does.',
    }),
    month_ends_at: z.iso.datetime().meta({
      description:
        'TEST_NOTIFICATION_LIMIT_REACHED: end of the month, and so the beginning of the next, UTC.',
    }),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

export type ErrorDetails = z.infer<typeof errorDetailsSchema>;

/** The form of every error, with the codes and details of a contract. */
export const errorBodySchema = <Code extends string, Details extends z.ZodType>(
  codes: readonly Code[],
  details: Details,
) =>
  z
    .object({
      success: z.literal(false),
      error: z.object({
        code: z.enum(codes).meta({ description: 'Stable; branch on this.' }),
        message: z.string().meta({ description: 'For people; may be reworded.' }),
        details: details.optional(),
      }),
    })
    .meta({ id: 'Error', description: 'Every error has this form.' });

export const errorSchema = errorBodySchema(errorCodes, errorDetailsSchema);

export type ErrorBody = z.infer<typeof errorSchema>;

/** When each code is sent, and what it then looks like: for the document and the partner guide. */
export const errorExamples: Readonly<Record<ErrorCode, { readonly when: string; readonly body: ErrorBody }>> =
  {
    INVALID_REQUEST: example('A field, the body or the protocol is not as it must be', 'INVALID_REQUEST', {
      message: 'merchant_finance_url must be a full URL that begins with https://.',
      details: { field: 'merchant_finance_url' },
    }),
    MISSING_FIELD: example('Required fields are absent or null', 'MISSING_FIELD', {
      message: 'Required fields are missing: merchant_id, loan_amount.',
      details: { field: 'merchant_id', fields: ['merchant_id', 'loan_amount'] },
    }),
    INVALID_AMOUNT_FORMAT: example('An amount has more than two decimal places', 'INVALID_AMOUNT_FORMAT', {
      message: 'loan_amount must have at most two decimal places.',
      details: { field: 'loan_amount' },
    }),
    UNAUTHENTICATED: example('The key is missing, unknown, expired, revoked or inactive', 'UNAUTHENTICATED', {
      message: 'The API key is not valid.',
    }),
    MERCHANT_NOT_FOUND: example('There is no such merchant', 'MERCHANT_NOT_FOUND', {
      message: 'The merchant does not exist.',
      details: { merchant_id: 'M999999' },
    }),
    NOT_FOUND: example('There is no such path or method', 'NOT_FOUND', {
      message: 'There is no such endpoint.',
    }),
    AMOUNT_TOO_LOW: example('The loan is below what any credit product offers', 'AMOUNT_TOO_LOW', {
      message: 'loan_amount is below the minimum of £10.00.',
      details: { provided_loan_amount: 9.99, minimum_required: 10 },
    }),
    AMOUNT_TOO_HIGH: example('The loan is above what any credit product offers', 'AMOUNT_TOO_HIGH', {
      message: 'loan_amount is above the maximum of £2,000,000.00.',
      details: { provided_loan_amount: 2_000_000.01, maximum_allowed: 2_000_000 },
    }),
    WEBHOOK_NOT_REGISTERED: example(
      "No webhook is registered for the key's environment, or it is disabled",
      'WEBHOOK_NOT_REGISTERED',
      {
        message: 'No webhook is registered for the sandbox environment.',
        details: { environment: 'sandbox' },
      },
    ),
    NOTIFICATION_NOT_FOUND: example(
      'There is no such notification of yours in this environment',
      'NOTIFICATION_NOT_FOUND',
      { message: 'The notification does not exist.', details: { field: 'notification_id' } },
    ),
    RECOVERY_NOT_FOUND: example(
      'There is no such recovery of yours in this environment',
      'RECOVERY_NOT_FOUND',
      {
        message: 'The recovery does not exist.',
        details: { field: 'recovery_id' },
      },
    ),
    APPLICATION_NOT_FOUND: example(
      'There is no such application of yours in this environment',
      'APPLICATION_NOT_FOUND',
      { message: 'The application does not exist.', details: { field: 'credit_application_id' } },
    ),
    NOTIFICATION_NOT_RESENDABLE: example(
      'It is under way, is a test, or its payload has been removed',
      'NOTIFICATION_NOT_RESENDABLE',
      {
        message: 'The notification is under way: wait until it has ended.',
        details: { reason: 'under_way' },
      },
    ),
    RECOVERY_UNDER_WAY: example('A recovery of this environment is still running', 'RECOVERY_UNDER_WAY', {
      message: 'A recovery of the sandbox environment is under way.',
      details: { environment: 'sandbox', recovery_id: 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA' },
    }),
    RECOVERY_DISABLED: example('Recoveries are switched off for you', 'RECOVERY_DISABLED', {
      message: 'Recoveries are switched off for you: write to us.',
    }),
    RATE_LIMIT_EXCEEDED: example('More than 100 requests in a minute with one key', 'RATE_LIMIT_EXCEEDED', {
      message: 'More than 100 requests in 60 seconds with this key. Retry in 12 s.',
    }),
    TEST_NOTIFICATION_LIMIT_REACHED: example(
      'All 100 test notifications of this environment and month are delivered or under way',
      'TEST_NOTIFICATION_LIMIT_REACHED',
      {
        message:
          'All 100 test notifications of this month are delivered or under way in the sandbox environment.',
        details: {
          environment: 'sandbox',
          limit: 100,
          delivered: 97,
          in_progress: 3,
          month_ends_at: '2026-12-01T00:00:00.000Z',
        },
      },
    ),
    INTERNAL_SERVER_ERROR: example('A fault on our side', 'INTERNAL_SERVER_ERROR', {
      message: 'Something went wrong on our side. Try again; quote the X-Request-Id if it persists.',
    }),
    MERCHANT_CONFIGURATION_INCOMPLETE: example(
      'The merchant cannot be quoted for until its set-up is complete',
      'MERCHANT_CONFIGURATION_INCOMPLETE',
      {
        message:
          "The merchant's set-up is incomplete. Retrying does not help until the service completes it.",
        details: { merchant_id: 'M000005', missing_fields: ['trading_name', 'products'] },
      },
    ),
  };

function example(when: string, code: ErrorCode, rest: { message: string; details?: ErrorDetails }) {
  return { when, body: { success: false, error: { code, ...rest } } } as const;
}
