import type { ErrorBody, ErrorCode, ErrorDetails } from '../../contracts/errors';

type Example = readonly [when: string, message: string, details?: ErrorDetails];

/** When each `error.code` is sent, and what it then looks like. */
const EXAMPLES: Readonly<Record<ErrorCode, Example>> = {
  INVALID_REQUEST: [
    'A field, the body or the protocol is not as it must be',
    'merchant_finance_url must be a full URL that begins with https://.',
    { field: 'merchant_finance_url' },
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

export function errorExample(code: ErrorCode): { readonly when: string; readonly body: ErrorBody } {
  const [when, message, details] = EXAMPLES[code];
  return { when, body: { success: false, error: { code, message, ...(details && { details }) } } };
}
