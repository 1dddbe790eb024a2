import { testEvent, type ApplicationEvent } from '../../contracts/webhook-event';
import type { TestFailureReason, TestNotificationBody } from '../../contracts/notifications';

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
