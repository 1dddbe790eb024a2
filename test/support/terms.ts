import type { ProductTerms } from '../../domain/product';

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
