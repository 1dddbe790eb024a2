import { z } from 'zod';
import { MERCHANT_ID } from '../../contracts/quote-request';
import type { ProductDefinition } from '../../db/catalogue/product-row';
import { Refused } from '../../db/refused';
import { formatPence } from '../../domain/money';
import { nameFault } from '../../domain/name';
import { LONGEST_PRODUCT_NAME, PRODUCT_BOUNDS, PRODUCT_CHOICES } from '../../domain/product';
import type { DepositRule } from '../../domain/product';
import type { PublishedExample } from '../../domain/product-check';

const typed = (expected: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is required' : `must be ${expected}`;

/** A text whose characters are checked where the stored one is known: a name that was stored earlier stays valid. */
const text = (most: number) =>
  z
    .string({ error: typed('text in quotes') })
    .refine((value) => value.trim() !== '', 'must not be empty')
    .refine((value) => value === value.trim(), 'must not begin or end with white space')
    .refine((value) => value.normalize('NFC').length <= most, `must be at most ${most} characters long`);

/** A name that shoppers or operators read, as it is stored: in NFC. @throws Refused when it is none. */
export function checkedName(name: string, longest: number): string {
  const parsed = text(longest).safeParse(name);
  const fault = parsed.success ? nameFault(name.normalize('NFC')) : parsed.error.issues[0]?.message;
  if (fault == null) return name.normalize('NFC');
  throw new Refused('invalid', `The name ${fault}.`);
}

const flag = z.boolean({ error: typed('true or false') });

const choice = <const T extends readonly [string, ...string[]]>(options: T) =>
  z.enum(options, { error: typed(`one of ${options.join(', ')}`) });

const whole = (low: number, high: number) => {
  const expected = `a whole number from ${low} to ${high}, without quotes`;
  return z
    .int({ error: typed(expected) })
    .refine((value) => value >= low && value <= high, `must be ${expected}`);
};

const amount = z
  .string({ error: typed('an amount in quotes with two decimals, such as "1000.00"') })
  .regex(
    /^(0|[1-9]\d{0,11})\.\d{2}$/,
    'must be an amount with two decimals and nothing else, such as "1000.00"',
  )
  .transform((value) => Number(value.replace('.', '')));

/** A percentage as text with at most `decimals` decimals, read as an integer of 1/10^decimals of a percent. */
const percent = (decimals: number, most: number, example: string) => {
  const expected = `a percentage in quotes with at most ${decimals} ${decimals === 1 ? 'decimal' : 'decimals'}, such as "${example}"`;
  return z
    .string({ error: typed(expected) })
    .regex(new RegExp(`^(0|[1-9]\\d{0,5})(\\.\\d{1,${decimals}})?$`), `must be ${expected}`)
    .transform((value) => {
      const [units = '0', rest = ''] = value.split('.');
      return Number(units + rest.padEnd(decimals, '0'));
    })
    .refine((value) => value <= most * 10 ** decimals, `must be at most ${most}`);
};

/** From the year 2000 on. */
const isCalendarDay = (text: string) => text.startsWith('2') && z.regexes.date.test(text);

const day = z
  .string({ error: typed('a day in quotes, such as "2027-01-31"') })
  .refine(isCalendarDay, 'must be a day of the calendar, such as "2027-01-31"');

const merchantId = z
  .string({ error: typed('text in quotes') })
  .regex(
    MERCHANT_ID,
    'must be M and six or seven digits, or two capital letters and three groups of four joined by hyphens',
  );

const partnerId = z
  .string({ error: typed('text in quotes') })
  .regex(/^P\d{6}$/, 'must be the letter P and six digits');

const [, HIGHEST_SHARE] = PRODUCT_BOUNDS.depositBasisPoints;

const [, HIGHEST_FIXED_PENCE] = PRODUCT_BOUNDS.depositFixedPence;
const fixedSum = amount.refine(
  (pence) => pence <= HIGHEST_FIXED_PENCE,
  `must be at most ${formatPence(HIGHEST_FIXED_PENCE)}`,
);

const deposit = z
  .strictObject(
    { percent: percent(2, HIGHEST_SHARE / 100, '10').nullish(), amount: fixedSum.nullish() },
    { error: 'must be an object with percent, amount or both' },
  )
  .refine((rule) => rule.percent != null || rule.amount != null, 'must have percent, amount or both');

/** The larger of the two counts; what is not stated is nothing. */
const minimumDeposit = deposit.transform((rule): DepositRule => ({
  basisPoints: rule.percent ?? 0,
  fixedPence: rule.amount ?? 0,
}));

/** The smaller of the two counts; what is not stated is no limit. */
const maximumDeposit = deposit
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

const representativeExample = z
  .strictObject(
    {
      loan_amount: amount,
      monthly_repayment: amount,
      final_repayment: amount.nullish(),
      total_amount_payable: amount.nullish(),
      cost_of_credit: amount.nullish(),
    },
    { error: typed('an object') },
  )
  .transform((stated): PublishedExample => ({
    loanPence: stated.loan_amount,
    monthlyRepaymentPence: stated.monthly_repayment,
    finalRepaymentPence: stated.final_repayment ?? undefined,
    totalPayablePence: stated.total_amount_payable ?? undefined,
    costOfCreditPence: stated.cost_of_credit ?? undefined,
  }));

export const productRowSchema = z.strictObject({
  merchant_id: merchantId,
  credit_product: text(LONGEST_PRODUCT_NAME),
  // The key of a lender, in whose place a fault repeats it.
  lender: text(LONGEST_PRODUCT_NAME).superRefine((value, context) => {
    const message = nameFault(value);
    if (message !== null) context.addIssue({ code: 'custom', message });
  }),
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

type ProductRow = z.output<typeof productRowSchema>;
export type ProductFileRow = z.input<typeof productRowSchema>;

export type StatedProduct = Omit<ProductDefinition, 'lenderName'>;

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

/** A row of a merchants file (docs/import-format.md). An absent field leaves a stored merchant as it is; `null` takes it away. */
export const merchantRowSchema = z.strictObject({
  merchant_id: merchantId,
  trading_name: text(120).nullish(),
  fca_authorised: flag.nullish(),
  show_products: flag.optional(),
  summary_style: choice(['offer', 'headline']).nullish(),
  deposit_floor: minimumDeposit.nullish(),
  partner_access: choice(['all', 'restricted']).optional(),
  partners: z
    .array(partnerId, { error: 'must be a list of partner ids' })
    .max(10_000, 'must hold at most 10,000 partner ids')
    .refine((ids) => new Set(ids).size === ids.length, 'must not name a partner twice')
    .optional(),
});

export type MerchantRow = z.output<typeof merchantRowSchema>;
export type MerchantFileRow = z.input<typeof merchantRowSchema>;
