import type { MerchantFields } from '../../db/catalogue/merchants';
import type { ProductDefinition, VersionColumns } from '../../db/catalogue/product-row';
import { snakeCase } from '../output';

/** What domain/product-check.ts finds fault with, in the words of a file. */
export const PRODUCT_NAMES: Readonly<Record<keyof ProductDefinition | 'publishedExample', string>> = {
  lender: 'lender',
  lenderName: 'lender_name',
  creditProduct: 'credit_product',
  numberOfRepayments: 'number_of_repayments',
  aprBasisPoints: 'apr',
  rateType: 'rate_type',
  rateBasis: 'rate_basis',
  ratePpm: 'rate',
  instalmentRounding: 'instalment_rounding',
  finalPayment: 'final_payment',
  deferralMonths: 'deferral_months',
  firstIntervalDays: 'first_interval_days',
  settlementFeePence: 'settlement_fee',
  minLoanPence: 'minimum_loan_amount',
  maxLoanPence: 'maximum_loan_amount',
  depositMin: 'minimum_deposit',
  depositMax: 'maximum_deposit',
  firstPaymentType: 'first_payment_type',
  annualRateShown: 'annual_rate_shown',
  validFrom: 'valid_from',
  validTo: 'valid_to',
  publishedExample: 'representative_example',
};

/** Stored deposit rules have two columns each. */
const DEPOSIT_COLUMNS: Readonly<Record<string, string>> = {
  depositMinBasisPoints: PRODUCT_NAMES.depositMin,
  depositMinFixedPence: PRODUCT_NAMES.depositMin,
  depositMaxBasisPoints: PRODUCT_NAMES.depositMax,
  depositMaxFixedPence: PRODUCT_NAMES.depositMax,
};

const termName = (column: keyof VersionColumns) =>
  DEPOSIT_COLUMNS[column] ?? PRODUCT_NAMES[column as keyof typeof PRODUCT_NAMES];

/** Columns of a version in the words of a file, each once. */
export function termNames(columns: readonly (keyof VersionColumns)[]): string[] {
  return [...new Set(columns.map(termName))];
}

/** A merchant's field in the words of a file. */
export const merchantName = (field: keyof MerchantFields) =>
  field === 'partnerIds' ? 'partners' : snakeCase(field);
