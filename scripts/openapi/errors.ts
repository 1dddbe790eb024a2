import { ERROR_STATUSES, type ErrorCode, type ErrorDetails } from '../../contracts/errors';
import {
  byStatus,
  content,
  keyedHeaders,
  requestIdHeader,
  retryAfter,
  unauthenticatedHeaders,
  type Json,
} from './parts';

export type Refused = readonly [message: string, details?: ErrorDetails];
type Example = readonly [when: string, ...Refused];

/** When each `error.code` is sent, and what it then looks like. */
const EXAMPLES: Readonly<Record<ErrorCode, Example>> = {
  INVALID_REQUEST: [
    'A field, a parameter, the body or the protocol is not as it must be',
    'verbose is not a field or parameter of this call.',
    { field: 'verbose' },
  ],
  MISSING_FIELD: [
    'Required fields are absent or null',
    'Required fields are missing: merchant_id, loan_amount.',
    { field: 'merchant_id', fields: ['merchant_id', 'loan_amount'] },
  ],
  INVALID_AMOUNT_FORMAT: [
    'An amount has more than two decimal places',
    'loan_amount must have at most two decimal places.',
    { field: 'loan_amount' },
  ],
  UNAUTHENTICATED: ['The key is missing, unknown, expired, revoked or inactive', 'The API key is not valid.'],
  MERCHANT_NOT_FOUND: [
    'There is no such merchant',
    'The merchant does not exist.',
    { merchant_id: 'M999999' },
  ],
  NOT_FOUND: ['There is no such path or method', 'There is no such endpoint.'],
  AMOUNT_TOO_LOW: [
    'The loan is below what any credit product offers',
    'loan_amount is below the minimum of £10.00.',
    { provided_loan_amount: 9.99, minimum_required: 10 },
  ],
  AMOUNT_TOO_HIGH: [
    'The loan is above what any credit product offers',
    'loan_amount is above the maximum of £2,000,000.00.',
    { provided_loan_amount: 2_000_000.01, maximum_allowed: 2_000_000 },
  ],
  NOTIFICATION_NOT_FOUND: [
    'There is no such notification of yours in this environment',
    'The notification does not exist.',
    { field: 'notification_id' },
  ],
  RECOVERY_NOT_FOUND: [
    'There is no such recovery of yours in this environment',
    'The recovery does not exist.',
    { field: 'recovery_id' },
  ],
  APPLICATION_NOT_FOUND: [
    'There is no such application of yours in this environment',
    'The application does not exist.',
    { field: 'credit_application_id' },
  ],
  QUOTE_NOT_FOUND: [
    'There is no such quote of yours in the sandbox',
    'The quote does not exist.',
    { field: 'service_quote_id' },
  ],
  PRODUCT_NOT_QUOTED: [
    'The quote has no product of this name, or none at all',
    'The quote offered no such product.',
    { field: 'credit_product' },
  ],
  SIMULATION_LIMIT_REACHED: [
    'The quote has 20 simulated applications',
    'The quote has 20 simulated applications: make another one.',
  ],
  EVENT_NOT_APPLICABLE: [
    'The state cannot follow the one that the application is in',
    'An application that is completed does not become accepted now.',
    { may_follow: ['partially_refunded', 'refunded'] },
  ],
  WEBHOOK_NOT_REGISTERED: [
    "No webhook is registered for the key's environment, or it is disabled",
    'No webhook is registered for the sandbox environment.',
    { environment: 'sandbox' },
  ],
  NOTIFICATION_NOT_RESENDABLE: [
    'It is under way, is a test, or its payload has been removed',
    'The notification is under way: wait until it has ended.',
    { reason: 'under_way' },
  ],
  RECOVERY_UNDER_WAY: [
    'A recovery of this environment is still running',
    'A recovery of the sandbox environment is under way.',
    { environment: 'sandbox', recovery_id: 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA' },
  ],
  RECOVERY_DISABLED: [
    'Recoveries are switched off for you',
    'Recoveries are switched off for you: write to us.',
  ],
  RATE_LIMIT_EXCEEDED: [
    'More than 100 requests in a minute with one key',
    'More than 100 requests in 60 seconds with this key. Retry in 12 s.',
  ],
  TEST_NOTIFICATION_LIMIT_REACHED: [
    'All 100 test notifications of this environment and month are delivered or under way',
    'All 100 test notifications of this month are delivered or under way in the sandbox environment.',
    {
      environment: 'sandbox',
      limit: 100,
      delivered: 97,
      in_progress: 3,
      month_ends_at: '2026-12-01T00:00:00.000Z',
    },
  ],
  INTERNAL_SERVER_ERROR: [
    'A fault on our side',
    'Something went wrong on our side. Try again; quote the X-Request-Id if it persists.',
  ],
  MERCHANT_CONFIGURATION_INCOMPLETE: [
    'The merchant cannot be quoted for until its set-up is complete',
    "The merchant's set-up is incomplete. Retrying does not help until the service completes it.",
    { merchant_id: 'M000005', missing_fields: ['trading_name', 'products'] },
  ],
};

/** What a status means where the call says nothing else. */
const USUAL: Readonly<Record<number, string>> = {
  400: 'The request cannot be read, or has a parameter that this call does not know.',
  401: 'The key is missing or not valid.',
  404: 'There is no such path or method.',
  429: 'More than 100 requests per minute with this key, or too many of your calls at once.',
  500: 'A fault on our side.',
};
const NOT_YOURS =
  "It does not exist, belongs to another partner or is of the other environment; or the path's id is none.";

/** Where the headers are not those of every call with an accepted key: a request that fails before that has used none of its limit. */
const HEADERS: Readonly<Record<number, Json>> = {
  400: requestIdHeader,
  401: unauthenticatedHeaders,
  404: requestIdHeader,
  429: { ...keyedHeaders, ...retryAfter },
  500: requestIdHeader,
};

/** What a status means for one call, where it is not the usual; null: the document says nothing of it. */
export type RefusalTexts = Readonly<Record<number, string | null>>;

/** What one call answers with a code, where it is not what every call does. */
export type RefusalExamples = Readonly<Partial<Record<ErrorCode, Refused>>>;

/** How a call with a key can be refused, by status. @param own its codes besides those of every call. */
export const refusals = (own: readonly ErrorCode[], says: RefusalTexts, shows: RefusalExamples): Json =>
  byStatus(ERROR_STATUSES, own, (status, codes) => {
    if (says[status] === null) return undefined;
    const examples = codes.map((code) => {
      const [summary, ...usual] = EXAMPLES[code];
      const [message, details] = shows[code] ?? usual;
      const error = { code, message, ...(details && { details }) };
      return [code, { summary, value: { success: false, error } }] as const;
    });
    // The merchant of a quote is looked up after the key was accepted.
    const other = codes.includes('MERCHANT_NOT_FOUND') ? undefined : HEADERS[status];
    return {
      description: says[status] ?? (status === 404 && codes.length > 1 ? NOT_YOURS : USUAL[status]),
      headers: other ?? keyedHeaders,
      content: content('ApiError', Object.fromEntries(examples)),
    };
  });
