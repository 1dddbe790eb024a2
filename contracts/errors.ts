import { z } from 'zod';
import { APPLICATION_STATES, statesAfter, type ApplicationState } from '../domain/application-states';
import { HIGHEST_LOAN_PENCE, LOWEST_LOAN_PENCE } from '../domain/product';
import type { Tenant } from '../domain/tenant';
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

const internalErrorDetailsSchema = z
  .object({
    ...fieldDetails,
    credit_application_id: text('APPLICATION_EXISTS: what the reference stands for.'),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

type Told = readonly [message: string, details?: ErrorDetails & z.infer<typeof internalErrorDetailsSchema>];
type Environment = Tenant['environment'];

/**
 * One way to be refused.
 * @param when when it is sent, for the document
 * @param says its message and details, of what is known where it happens
 * @param example such a case, for the document
 */
const kind = <Given extends readonly unknown[]>(
  status: number,
  when: string,
  says: (...given: Given) => Told,
  ...example: Given
) => ({ status, when, says, example });

/** Its message is that of the field's check; each call's document has an example of its own (api/operation.ts). */
const broken = (when: string) => ({
  status: 400,
  when,
  says: (message: string, field?: string): Told => [message, field === undefined ? undefined : { field }],
  example: null,
});

const doesNotExist = (noun: string, field: string, whose: string) =>
  kind(404, `there is no such ${noun} ${whose}`, () => [`The ${noun} does not exist.`, { field }]);

const NOT_RESENDABLE: Readonly<Record<NonNullable<ErrorDetails['reason']>, string>> = {
  under_way: 'The notification is under way: wait until it has ended.',
  test: 'Tests are not sent again: send a new one.',
  payload_removed: 'The payload of the notification has been removed, as its time of keeping is over.',
};

const SIMULATION_LIMITS = {
  quote: 'The quote has 20 simulated applications: make another one.',
  references:
    "Your simulated applications have every reference of this lender's form: choose another credit_product.",
  events: 'The application has 100 events: open another one.',
} as const;

interface CallsCounted {
  readonly limit: number;
  readonly retrySeconds: number;
  readonly of: 'with this key' | 'without a valid key from your address';
}

/** Every `error.code` for partners. A new one changes the contract. */
export const REFUSALS = {
  INVALID_REQUEST: broken(
    'a field, a parameter, the body or the protocol is not as this call takes it; `details.field` names the field or parameter',
  ),
  MISSING_FIELD: kind(
    400,
    'required fields are absent or null; `details.fields` has all of them',
    (fields: string[]) => [
      fields.length === 1
        ? `${fields[0]} is required.`
        : `Required fields are missing: ${fields.join(', ')}.`,
      { field: fields[0], fields },
    ],
    ['merchant_id', 'loan_amount'],
  ),
  INVALID_AMOUNT_FORMAT: broken('an amount has more than two decimal places'),
  UNAUTHENTICATED: kind(
    401,
    'the key is missing, unknown, expired, revoked or inactive',
    (sent: 'none' | 'one') => [
      sent === 'none'
        ? 'Send your API key as "Authorization: Bearer <API_KEY>".'
        : 'The API key is not valid.',
    ],
    'one',
  ),
  MERCHANT_NOT_FOUND: kind(
    404,
    'the merchant does not exist, or does not for you',
    (merchant_id: string) => ['The merchant does not exist.', { merchant_id }],
    'M999999',
  ),
  NOT_FOUND: kind(
    404,
    'there is no such path or method for this key, or the id in the path has not its form',
    (method: string) => [
      `There is no such endpoint for ${method}: check method and path, and the form of an id in it.`,
    ],
    'GET',
  ),
  AMOUNT_TOO_LOW: kind(
    422,
    'no credit product at all is offered for so low an amount',
    (pounds: number) => [
      'loan_amount is below the minimum of £10.00.',
      { provided_loan_amount: pounds, minimum_required: LOWEST_LOAN_PENCE / 100 },
    ],
    9.99,
  ),
  AMOUNT_TOO_HIGH: kind(
    422,
    'no credit product at all is offered for so high an amount',
    (pounds: number) => [
      'loan_amount is above the maximum of £2,000,000.00.',
      { provided_loan_amount: pounds, maximum_allowed: HIGHEST_LOAN_PENCE / 100 },
    ],
    2_000_000.01,
  ),
  NOTIFICATION_NOT_FOUND: doesNotExist('notification', 'notification_id', 'of yours in this environment'),
  RECOVERY_NOT_FOUND: doesNotExist('recovery', 'recovery_id', 'of yours in this environment'),
  APPLICATION_NOT_FOUND: doesNotExist('application', 'credit_application_id', 'of yours in this environment'),
  QUOTE_NOT_FOUND: doesNotExist('quote', 'service_quote_id', 'of yours in the sandbox'),
  PRODUCT_NOT_QUOTED: kind(404, 'the quote has no product of this name, or none at all', () => [
    'The quote offered no such product.',
    { field: 'credit_product' },
  ]),
  SIMULATION_LIMIT_REACHED: kind(
    409,
    'the quote has 20 simulated applications, yours have every reference of this lender, or the application has 100 events',
    (reached: keyof typeof SIMULATION_LIMITS) => [SIMULATION_LIMITS[reached]],
    'quote',
  ),
  EVENT_NOT_APPLICABLE: kind(
    409,
    'the state cannot follow the one that the application is in; `details.may_follow` has those that can',
    (from: ApplicationState, to: ApplicationState) => [
      `An application that is ${from} does not become ${to} now.`,
      { may_follow: statesAfter(from) },
    ],
    'completed',
    'accepted',
  ),
  WEBHOOK_NOT_REGISTERED: kind(
    409,
    "no webhook is registered for the key's environment, or it is disabled",
    (environment: Environment) => [
      `No webhook is registered for the ${environment} environment, or it is disabled.`,
      { environment },
    ],
    'sandbox',
  ),
  NOTIFICATION_NOT_RESENDABLE: kind(
    409,
    'it is under way, is a test, or its payload has been removed; `details.reason` says which',
    (reason: keyof typeof NOT_RESENDABLE) => [NOT_RESENDABLE[reason], { reason }],
    'under_way',
  ),
  RECOVERY_UNDER_WAY: kind(
    409,
    'a recovery of this environment is still running, or another call of yours is being counted',
    (environment: Environment, recovery_id?: string | null) =>
      recovery_id === null
        ? ['Another call of yours is being counted. Retry in a second.', { environment }]
        : [
            `A recovery of the ${environment} environment is under way.`,
            { environment, ...(recovery_id !== undefined && { recovery_id }) },
          ],
    'sandbox',
    'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA',
  ),
  RECOVERY_DISABLED: kind(409, 'recoveries are switched off for you; a dry run is refused, too', () => [
    'Recoveries are switched off for you: write to us.',
  ]),
  RATE_LIMIT_EXCEEDED: kind(
    429,
    'more than 100 requests in a minute with this key, too many of yours at once, or too many from your address without a valid key; wait `Retry-After` seconds',
    (counted: CallsCounted | null) => [
      counted === null
        ? 'Too many of your calls are under way at once. Retry in a second.'
        : `More than ${counted.limit} calls in 60 seconds ${counted.of}. Retry in ${counted.retrySeconds} s.`,
    ],
    { limit: 100, retrySeconds: 12, of: 'with this key' },
  ),
  TEST_NOTIFICATION_LIMIT_REACHED: kind(
    429,
    'all 100 tests of this month are delivered or under way. Wait `Retry-After` seconds: until the end of the month when 100 are ' +
      'delivered, else a minute, because one that is under way may fail and no longer count. The RateLimit headers are always those ' +
      'of the requests per minute',
    (use: Pick<ErrorDetails, 'environment' | 'limit' | 'delivered' | 'in_progress' | 'month_ends_at'>) => [
      `All ${use.limit} test notifications of this month are delivered or under way in the ${use.environment} environment.`,
      use,
    ],
    {
      environment: 'sandbox',
      limit: 100,
      delivered: 97,
      in_progress: 3,
      month_ends_at: '2026-12-01T00:00:00.000Z',
    },
  ),
  INTERNAL_SERVER_ERROR: kind(500, 'a fault on our side', () => [
    'Something went wrong on our side. Try again; quote the X-Request-Id if it persists.',
  ]),
  MERCHANT_CONFIGURATION_INCOMPLETE: kind(
    500,
    'the merchant cannot be quoted for until its set-up is complete',
    (merchant_id: string, missing_fields: string[]) => [
      "The merchant's set-up is incomplete. Retrying does not help until the service completes it.",
      { merchant_id, missing_fields },
    ],
    'M000005',
    ['trading_name', 'products'],
  ),
};
export type ErrorCode = keyof typeof REFUSALS;

const { INVALID_REQUEST, MISSING_FIELD, INVALID_AMOUNT_FORMAT, UNAUTHENTICATED } = REFUSALS;

/** Every `error.code` of the internal listener. Those that partners know, too, have one message. */
export const INTERNAL_REFUSALS = {
  INVALID_REQUEST,
  MISSING_FIELD,
  INVALID_AMOUNT_FORMAT,
  QUOTE_ID_MISMATCH: kind(400, '`service_quote_id` and `quote_id` are both there and differ', () => [
    'service_quote_id and quote_id name different quotes.',
    { field: 'service_quote_id' },
  ]),
  INVALID_LENDER_REFERENCE: kind(400, "the reference is not of the lender's form", () => [
    "lender_reference is not of the lender's form.",
    { field: 'lender_reference' },
  ]),
  UNAUTHENTICATED,
  NOT_FOUND: { ...REFUSALS.NOT_FOUND, when: 'there is no such path or method' },
  LENDER_NOT_FOUND: doesNotExist('lender', 'lender', 'for this key'),
  QUOTE_NOT_FOUND: {
    ...REFUSALS.QUOTE_NOT_FOUND,
    when: 'there is no such quote for this key, or its month has been dropped',
  },
  PRODUCT_NOT_QUOTED: {
    ...REFUSALS.PRODUCT_NOT_QUOTED,
    when: "the quote offered no such product of the key's lender; without a product, none of that lender at all",
  },
  APPLICATION_NOT_FOUND: {
    ...REFUSALS.APPLICATION_NOT_FOUND,
    when: 'there is no such application for this key',
  },
  APPLICATION_EXISTS: kind(
    409,
    "the lender's reference stands for another application of this environment",
    (credit_application_id: string) => [
      "The lender's reference stands for another application.",
      { field: 'lender_reference', credit_application_id },
    ],
    'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
  ),
  LENDER_EVENT_EXISTS: kind(409, "the lender's event id stands for another event", () => [
    "The lender's event id stands for another event.",
    { field: 'lender_event_id' },
  ]),
  LENDER_EVENT_LIMIT_REACHED: kind(
    409,
    'the application has 1,000 events, or 50 that wait for the steps before them: the event is not stored',
    () => ['The application has 1,000 events, or 50 that wait.'],
  ),
  APPLICATION_STATE_UNKNOWN: kind(
    503,
    'the application has a state that this release does not know, as a newer one was taken back; the event is not stored: send it again after `Retry-After` seconds',
    (state: string) => [
      `The application has the state ${state}, which this release does not know. Send the event again later.`,
    ],
    'on_hold',
  ),
  AMOUNTS_NOT_QUOTED: kind(422, 'the amounts are not those that were quoted', () => [
    'These amounts were not quoted.',
    { field: 'loan_amount' },
  ]),
  MERCHANT_REFERENCE_MISMATCH: kind(422, "the reference is not the quote's", () => [
    "merchant_reference is not the quote's.",
    { field: 'merchant_reference' },
  ]),
  RATE_LIMIT_EXCEEDED: {
    ...REFUSALS.RATE_LIMIT_EXCEEDED,
    when: 'too many calls of your lender at once, or more than 300 in a minute from your address without a valid service key, for which a call with one is never refused; wait `Retry-After` seconds',
    example: [{ limit: 300, retrySeconds: 12, of: 'without a valid key from your address' }] as [
      CallsCounted,
    ],
  },
  INTERNAL_SERVER_ERROR: {
    ...REFUSALS.INTERNAL_SERVER_ERROR,
    when: 'a fault on our side; ask again, it is safe',
  },
};

const ALL = { ...INTERNAL_REFUSALS, ...REFUSALS };
export type AnyErrorCode = keyof typeof ALL;

/** A refusal as it is sent, with its status. */
export interface Refusal {
  readonly status: number;
  readonly error: { readonly code: AnyErrorCode; readonly message: string; readonly details?: Told[1] };
}

/** What a refusal says is made of. */
export type GivenTo<Code extends AnyErrorCode> = Parameters<(typeof ALL)[Code]['says']>;

export function refusal<Code extends AnyErrorCode>(code: Code, ...given: GivenTo<Code>): Refusal {
  const { status, says } = ALL[code];
  const [message, details] = (says as (...given: readonly unknown[]) => Told)(...given);
  return { status, error: details === undefined ? { code, message } : { code, message, details } };
}

const errorBodySchema = <Code extends string, Details extends z.ZodType>(
  codes: Readonly<Record<Code, unknown>>,
  details: Details,
) =>
  z
    .object({
      success: z.literal(false).meta({ description: 'Always false.' }),
      error: z.object({
        code: z.enum(Object.keys(codes) as Code[]).meta({ description: 'Stable; branch on this.' }),
        message: text('For people; may be reworded.'),
        details: details.optional(),
      }),
    })
    .meta({ id: 'ErrorResponse', description: 'Every error has this form.' });

export const errorSchema = errorBodySchema(REFUSALS, errorDetailsSchema);
export const internalErrorSchema = errorBodySchema(INTERNAL_REFUSALS, internalErrorDetailsSchema);

export type AnyErrorBody = z.infer<typeof errorSchema> | z.infer<typeof internalErrorSchema>;
