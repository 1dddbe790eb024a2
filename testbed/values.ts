import type { QuoteRow } from '../db/quotes/store';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import type { ProductTerms } from '../domain/product';

/** The partner whose keys tests use. */
export const PARTNER_ID = 'P100001';

/** A body that every designated test merchant accepts. */
export const goodQuote = {
  merchant_id: 'M000001',
  partner_id: PARTNER_ID,
  loan_amount: '900.00',
  customer_deposit: '100.00',
  merchant_finance_url: 'https://shop.example/finance',
};

/** A quote as it is stored, with what a test says otherwise. @param number makes its id */
export function quoteRow(number: number, fields: Partial<QuoteRow> = {}): QuoteRow {
  return {
    quoteId: `qte_${String(number).padStart(26, '0')}`,
    partnerId: 'P100001',
    keyId: 'key_1',
    environment: 'sandbox',
    merchantId: 'M100001',
    loanPence: 120_000,
    depositPence: null,
    usedDepositPence: 0,
    merchantFinanceUrl: 'https://shop.example/finance',
    merchantReference: 'basket 1',
    requestId: 'rq_1',
    response: '{"success":true}',
    fitted: [],
    ...fields,
  };
}

/** What attempts of tests come to, where it does not matter how fast. */
export const DELIVERED = {
  kind: 'delivered',
  httpStatus: 200,
  durationMs: 12,
} as const satisfies DeliveryOutcome;

export const FAILED = {
  kind: 'failed',
  failure: 'http_status',
  httpStatus: 503,
  durationMs: 7,
  retryAfterMs: null,
} as const satisfies DeliveryOutcome;

/** A sound product that others vary. */
export const TERMS: ProductTerms = {
  lender: 'lender_a',
  creditProduct: 'Classic 12',
  numberOfRepayments: 12,
  aprBasisPoints: 990,
  rateType: 'fixed',
  rateBasis: 'apr_effective',
  ratePpm: null,
  instalmentRounding: 'half_up',
  finalPayment: 'equal',
  deferralMonths: 0,
  firstIntervalDays: null,
  settlementFeePence: 0,
  minLoanPence: 10_000,
  maxLoanPence: 1_000_000,
  depositMin: null,
  depositMax: null,
  firstPaymentType: 'monthly_repayment',
  annualRateShown: 'flat',
};
