import type { ErrorBody, ErrorCode, ErrorDetails } from '../../contracts/errors';
import type { TestFailureReason, TestNotificationBody } from '../../contracts/notifications';
import { type ApplicationEvent, testEvent } from '../../contracts/webhook-event';

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

export function errorExample(code: ErrorCode): { readonly when: string; readonly body: ErrorBody } {
  const [when, message, details] = EXAMPLES[code];
  return { when, body: { success: false, error: { code, message, ...(details && { details }) } } };
}

/** Examples of the document. A test sends the requests and compares the responses. */

export const QUOTE_REQUEST_EXAMPLES = {
  basket: {
    summary: 'A basket of £1,000.00 with a deposit of £100.00',
    value: {
      merchant_id: 'M000001',
      partner_id: 'P100001',
      loan_amount: '900.00',
      customer_deposit: '100.00',
      merchant_finance_url: 'https://shop.example/finance',
      merchant_reference: 'basket 2041',
    },
  },
} as const;

const link = (more: string) =>
  `https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00${more}&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6&merchant_reference=basket%202041`;

export const QUOTE_RESPONSE_EXAMPLES = {
  offers: {
    summary: 'Offers to show',
    value: {
      success: true,
      data: {
        service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
        merchant_reference: 'basket 2041',
        summary: {
          display: true,
          finance_offer_summary: `Spread the cost from £38.58 a month at 19.9% APR representative. <a href="${link('').replaceAll('&', '&amp;')}">Learn more</a>`,
        },
        products: [
          {
            lender: 'Test Lender A',
            credit_product: '12 months at 9.9% APR',
            purchase_price: '1000.00',
            customer_deposit: '100.00',
            loan_amount: '900.00',
            first_payment_type: 'monthly_repayment',
            first_payment_amount: '78.91',
            initial_payment_due_value: 1,
            initial_payment_due_unit: 'months',
            apr: '9.9% Fixed',
            annual_interest_rate: '5.21%',
            number_of_repayments: 12,
            monthly_repayment: '78.91',
            cost_of_credit: '46.92',
            total_amount_payable_excluding_deposit: '946.92',
            merchant_finance_url: link('&credit_product=12%20months%20at%209.9%25%20APR'),
          },
        ],
      },
    },
  },
  nothing: {
    summary: 'Nothing fits: show no finance',
    value: {
      success: true,
      data: {
        service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
        merchant_reference: null,
        summary: { display: false, finance_offer_summary: '' },
        products: [],
      },
    },
  },
} as const;

const TEST_EVENT_ID = 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8';

const testNotification = (
  status: TestNotificationBody['data']['status'],
  attempt: TestNotificationBody['data']['attempt'],
  reason: TestFailureReason | null = null,
): TestNotificationBody => ({
  success: true,
  data: {
    notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    event_id: TEST_EVENT_ID,
    event_type: 'credit_application.test',
    environment: 'sandbox',
    status,
    reason,
    attempt,
  },
});

export const TEST_ENDED_EXAMPLES = {
  delivered: {
    summary: 'Your endpoint answered 2xx',
    value: testNotification('delivered', { http_status: 200, duration_ms: 83 }),
  },
  failed: {
    summary: 'Your endpoint answered 410 and is disabled; no other attempt follows',
    value: testNotification('failed', { http_status: 410, duration_ms: 41 }, 'gone'),
  },
};

export const TEST_PENDING_EXAMPLES = {
  retrying: {
    summary: 'Your endpoint answered something else; two more attempts follow',
    value: testNotification('retrying', { http_status: 500, duration_ms: 41 }),
  },
  unreachable: {
    summary: 'Your endpoint did not answer; two more attempts follow',
    value: testNotification('retrying', { http_status: null, duration_ms: 5_003 }),
  },
  queued: { summary: 'No attempt has ended yet', value: testNotification('queued', null) },
};

const applicationEvent: ApplicationEvent = {
  event_id: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
  event_type: 'credit_application.accepted',
  api_version: 'v1',
  environment: 'live',
  created_at: '2026-11-21T12:00:00.120Z',
  sequence: 3,
  data: {
    credit_application_id: 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
    service_quote_id: 'qte_01KAF0W3N5Q7R9T1V3X5Z7B9D1',
    merchant_reference: 'basket 2041',
    merchant_id: 'M100001',
    lender: 'lender_a',
    lender_reference: 'AB12CD34',
    status: 'accepted',
    previous_status: 'submitted',
    loan_amount: '900.00',
    customer_deposit: '100.00',
    occurred_at: '2026-11-21T11:59:58.000Z',
    credit_product: 'Classic credit 12 months',
  },
};

export const APPLICATION_EVENT_EXAMPLES = {
  accepted: { summary: 'An application was accepted', value: applicationEvent },
};

const createdAt = new Date('2026-11-21T12:00:00.000Z');
const test = { eventId: TEST_EVENT_ID, environment: 'sandbox', createdAt } as const;

export const TEST_EVENT_EXAMPLES = {
  standard: { summary: 'Without a lender', value: testEvent({ ...test, lender: null }) },
  lender_a: { summary: 'With `?lender=lender_a`', value: testEvent({ ...test, lender: 'lender_a' }) },
  lender_b: { summary: 'With `?lender=lender_b`', value: testEvent({ ...test, lender: 'lender_b' }) },
};
