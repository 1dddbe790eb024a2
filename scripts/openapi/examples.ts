import type { QuoteResponseBody } from '../../contracts/quote-response';
import { type ApplicationEvent, testEvent } from '../../contracts/webhook-event';

/** Examples of the document: of quotes and webhooks. A test sends the requests and compares the responses. */

/** An answer to a call that succeeded. */
export const answered = <Body extends { readonly data: unknown }>(summary: string, data: Body['data']) => ({
  summary,
  value: { success: true, data },
});

const link = (more: string) =>
  `https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00${more}&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6&merchant_reference=basket%202041`;

/** By the component whose examples they are. */
export const QUOTE_EXAMPLES = {
  QuoteRequest: {
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
  },
  QuoteResponse: {
    offers: answered<QuoteResponseBody>('Offers to show', {
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
    }),
    nothing: answered<QuoteResponseBody>('Nothing fits: show no finance', {
      service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
      merchant_reference: null,
      summary: { display: false, finance_offer_summary: '' },
      products: [],
    }),
  },
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

const createdAt = new Date('2026-11-21T12:00:00.000Z');
const test = { eventId: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8', environment: 'sandbox', createdAt } as const;

/** By the component whose examples they are. */
export const EVENT_EXAMPLES = {
  CreditApplicationEvent: {
    accepted: { summary: 'An application was accepted', value: applicationEvent },
  },
  TestEvent: {
    standard: { summary: 'Without a lender', value: testEvent({ ...test, lender: null }) },
    lender_a: { summary: 'With `?lender=lender_a`', value: testEvent({ ...test, lender: 'lender_a' }) },
    lender_b: { summary: 'With `?lender=lender_b`', value: testEvent({ ...test, lender: 'lender_b' }) },
  },
};
