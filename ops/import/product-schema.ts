import { z } from 'zod';
import type { PublishedExample } from '../../domain/product-check';
import {
  type DepositRule,
  LONGEST_PRODUCT_NAME,
  PRODUCT_BOUNDS,
  PRODUCT_CHOICES,
} from '../../domain/product';
import { formatPence } from '../../domain/money';
import type { ProductDefinition } from '../../db/catalogue/product-row';
import { amount, choice, day, flag, merchantId, percent, text, whole } from './fields';

const object = (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is required' : 'must be an object';

const [, HIGHEST_SHARE] = PRODUCT_BOUNDS.depositBasisPoints;

const [, HIGHEST_FIXED_PENCE] = PRODUCT_BOUNDS.depositFixedPence;
const fixedSum = amount.refine(
  (pence) => pence <= HIGHEST_FIXED_PENCE,
  `must be at most ${formatPence(HIGHEST_FIXED_PENCE)}`,
);

/** A share of the price, a fixed sum, or both. */
const deposit = z.strictObject(
  { percent: percent(2, HIGHEST_SHARE / 100, '10').nullish(), amount: fixedSum.nullish() },
  { error: 'must be an object with percent, amount or both' },
);
const stated = deposit.refine(
  (rule) => rule.percent != null || rule.amount != null,
  'must have percent, amount or both',
);

/** The larger of the two counts; what is not stated is nothing. */
export const minimumDeposit = stated.transform((rule): DepositRule => ({
  basisPoints: rule.percent ?? 0,
  fixedPence: rule.amount ?? 0,
}));

/** The smaller of the two counts; what is not stated is no limit. */
const maximumDeposit = stated
  .refine((rule) => rule.amount !== 0, {
    message:
      'must be above 0.00: leave it out for no fixed limit, or state a percent of "0" for no deposit at all',
    path: ['amount'],
  })
  .transform((rule): DepositRule => ({
    basisPoints: rule.percent ?? HIGHEST_SHARE,
    fixedPence: rule.amount ?? 0,
  }));

const [LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE] = PRODUCT_BOUNDS.minLoanPence;
const loanAmount = amount.refine(
  (pence) => pence >= LOWEST_LOAN_PENCE && pence <= HIGHEST_LOAN_PENCE,
  `must be from ${formatPence(LOWEST_LOAN_PENCE)} to ${formatPence(HIGHEST_LOAN_PENCE)}`,
);

/** Figures that a lender or retailer publishes, which the product must reproduce to the penny. */
const representativeExample = z.strictObject(
  {
    loan_amount: amount,
    monthly_repayment: amount,
    final_repayment: amount.nullish(),
    total_amount_payable: amount.nullish(),
    cost_of_credit: amount.nullish(),
  },
  { error: object },
);

/** One row of a products file (docs/import-format.md). */
export const productRowSchema = z.strictObject({
  merchant_id: merchantId,
  credit_product: text(LONGEST_PRODUCT_NAME),
  lender: text(LONGEST_PRODUCT_NAME),
  number_of_repayments: whole(...PRODUCT_BOUNDS.numberOfRepayments),
  apr: percent(1, PRODUCT_BOUNDS.aprBasisPoints[1] / 100, '9.9'),
  rate_type: choice(PRODUCT_CHOICES.rateType).nullish(),
  rate_basis: choice(PRODUCT_CHOICES.rateBasis).nullish(),
  rate: percent(4, PRODUCT_BOUNDS.ratePpm[1] / 10_000, '0.79').nullish(),
  instalment_rounding: choice(PRODUCT_CHOICES.instalmentRounding).nullish(),
  final_payment: choice(PRODUCT_CHOICES.finalPayment).nullish(),
  deferral_months: whole(...PRODUCT_BOUNDS.deferralMonths).nullish(),
  first_interval_days: whole(...PRODUCT_BOUNDS.firstIntervalDays).nullish(),
  settlement_fee: fixedSum.nullish(),
  minimum_loan_amount: loanAmount,
  maximum_loan_amount: loanAmount,
  minimum_deposit: minimumDeposit.nullish(),
  maximum_deposit: maximumDeposit.nullish(),
  first_payment_type: choice(PRODUCT_CHOICES.firstPaymentType).nullish(),
  annual_rate_shown: choice(PRODUCT_CHOICES.annualRateShown).nullish(),
  valid_from: day.nullish(),
  valid_to: day.nullish(),
  display_order: whole(0, 1_000_000).nullish(),
  active: flag.nullish(),
  representative_example: representativeExample.nullish(),
});

export type ProductRow = z.output<typeof productRowSchema>;
/** A row as it stands in a file. */
export type ProductFileRow = z.input<typeof productRowSchema>;

/** What a row states. What its lender is called is not for it to say. */
export type StatedProduct = Omit<ProductDefinition, 'lenderName'>;

/** The terms that a row states, with the defaults of docs/import-format.md. */
export function toProductDefinition(row: ProductRow): StatedProduct {
  return {
    lender: row.lender,
    creditProduct: row.credit_product,
    numberOfRepayments: row.number_of_repayments,
    // Tenths of a percent.
    aprBasisPoints: row.apr * 10,
    rateType: row.rate_type ?? 'fixed',
    rateBasis: row.rate_basis ?? 'apr_effective',
    ratePpm: row.rate ?? null,
    instalmentRounding: row.instalment_rounding ?? 'half_up',
    finalPayment: row.final_payment ?? (row.apr === 0 ? 'remainder' : 'equal'),
    deferralMonths: row.deferral_months ?? 0,
    firstIntervalDays: row.first_interval_days ?? null,
    settlementFeePence: row.settlement_fee ?? 0,
    minLoanPence: row.minimum_loan_amount,
    maxLoanPence: row.maximum_loan_amount,
    depositMin: row.minimum_deposit ?? null,
    depositMax: row.maximum_deposit ?? null,
    firstPaymentType: row.first_payment_type ?? 'monthly_repayment',
    annualRateShown: row.annual_rate_shown ?? 'flat',
    validFrom: row.valid_from ?? null,
    validTo: row.valid_to ?? null,
  };
}

/** The published figures that a row states, as domain/product-check.ts wants them. */
export function toPublishedExample(row: ProductRow): PublishedExample | undefined {
  const example = row.representative_example;
  if (example == null) return undefined;
  return {
    loanPence: example.loan_amount,
    monthlyRepaymentPence: example.monthly_repayment,
    finalRepaymentPence: example.final_repayment ?? undefined,
    totalPayablePence: example.total_amount_payable ?? undefined,
    costOfCreditPence: example.cost_of_credit ?? undefined,
  };
}
