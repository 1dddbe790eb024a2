import { HIGHEST_LOAN_PENCE, LOWEST_LOAN_PENCE, type ProductTerms } from './product';

/** £1,000,000 of fixed deposit or fee: half the largest loan. */
const HIGHEST_FIXED_PENCE = 100_000_000;

/** Lowest and highest value of each number among the terms of a product, and of a deposit rule. */
export const PRODUCT_BOUNDS = {
  numberOfRepayments: [1, 120],
  /** 10,000 %: above any APR in the market, and still exact in doubles over the longest term. */
  aprBasisPoints: [0, 1_000_000],
  /** 10,000 % a month or a year, in millionths; what is sensible is settled by comparison with the APR. */
  ratePpm: [0, 100_000_000],
  deferralMonths: [0, 60],
  /** Five years. */
  firstIntervalDays: [1, 1_830],
  settlementFeePence: [0, HIGHEST_FIXED_PENCE],
  minLoanPence: [LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE],
  maxLoanPence: [LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE],
  depositBasisPoints: [0, 10_000],
  depositFixedPence: [0, HIGHEST_FIXED_PENCE],
} as const satisfies Readonly<Record<string, readonly [lowest: number, highest: number]>>;

/** The words that a term of a product may be. */
export const PRODUCT_CHOICES = {
  rateType: ['fixed', 'variable'],
  rateBasis: ['apr_effective', 'monthly_rate', 'nominal_annual'],
  instalmentRounding: ['half_up', 'floor', 'ceil'],
  finalPayment: ['equal', 'remainder', 'clear_balance'],
  firstPaymentType: ['monthly_repayment', 'deposit', 'none'],
  annualRateShown: ['flat', 'nominal', 'effective'],
} as const satisfies { [Field in keyof ProductTerms]?: readonly ProductTerms[Field][] };

/** Characters of a lender's or product's name: enough for any that is in use, few enough for a link. */
export const LONGEST_PRODUCT_NAME = 120;

/** Whether a stored or given value is a whole number within these bounds. */
export const isWithin = (value: unknown, [lowest, highest]: readonly [number, number]): boolean =>
  Number.isSafeInteger(value) && (value as number) >= lowest && (value as number) <= highest;

/** Whether both parts of a deposit rule are possible; an absent part is none. */
export const isPossibleDeposit = (basisPoints: unknown, fixedPence: unknown): boolean =>
  isWithin(basisPoints ?? 0, PRODUCT_BOUNDS.depositBasisPoints) &&
  isWithin(fixedPence ?? 0, PRODUCT_BOUNDS.depositFixedPence);
