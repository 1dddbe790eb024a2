import { formatPence } from './money';
import { checkOwnFigures } from './product-figures';
import type { DepositRule, ProductTerms } from './product';
import { HIGHEST_LOAN_PENCE, LOWEST_LOAN_PENCE, MOST_REPAYMENTS } from './product';
import { checkPublishedExample } from './published-example';
import type { PublishedExample } from './published-example';

/** Why a product is refused. */
export interface Fault {
  /** The field at fault, or `publishedExample`. */
  readonly field: keyof ProductTerms | 'publishedExample';
  /** For the person who imports it; names the figures. */
  readonly message: string;
}

/** 10,000 %: above any APR in the market, and still exact in doubles over the longest term. */
const HIGHEST_APR_BASIS_POINTS = 1_000_000;
/** 1,000 % a month or a year, in millionths; what is sensible is settled by comparison with the APR. */
const HIGHEST_RATE_PPM = 100_000_000;
/** Longest deferral in months, and longest first interval in days (five years). */
const MOST_DEFERRAL_MONTHS = 60;
const MOST_FIRST_INTERVAL_DAYS = 1_830;
/** How far a first interval in days may be from the months deferred: one month of either length. */
const FIRST_INTERVAL_SLACK_DAYS = 31;
/** £1,000,000 of fixed deposit or fee: half the largest loan. */
const HIGHEST_FIXED_PENCE = 100_000_000;
/** Long enough for any product name a lender uses, short enough for a link. */
const LONGEST_NAME = 120;

const CHOICES = {
  rateType: ['fixed', 'variable'],
  rateBasis: ['apr_effective', 'monthly_rate', 'nominal_annual'],
  instalmentRounding: ['half_up', 'floor', 'ceil'],
  finalPayment: ['equal', 'remainder', 'clear_balance'],
  firstPaymentType: ['monthly_repayment', 'deposit', 'none'],
  annualRateShown: ['flat', 'nominal', 'effective'],
} as const satisfies { [Field in keyof ProductTerms]?: readonly ProductTerms[Field][] };

function isWhole(value: number, lowest: number, highest: number): boolean {
  return Number.isSafeInteger(value) && value >= lowest && value <= highest;
}

function checkNamesAndChoices(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  for (const field of ['lender', 'creditProduct'] as const) {
    const name = terms[field];
    if (name === '' || name !== name.trim() || name.length > LONGEST_NAME || /[\p{Cc}\p{Cs}]/u.test(name)) {
      faults.push({
        field,
        message: `must be 1–${LONGEST_NAME} printable characters, without spaces around them`,
      });
    }
  }
  for (const field of Object.keys(CHOICES) as (keyof typeof CHOICES)[]) {
    const choices: readonly string[] = CHOICES[field];
    if (!choices.includes(terms[field]))
      faults.push({ field, message: `must be one of ${choices.join(', ')}` });
  }
  return faults;
}

function checkNumbers(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const range = (field: keyof ProductTerms, value: number, lowest: number, highest: number): void => {
    if (!isWhole(value, lowest, highest)) {
      faults.push({ field, message: `must be a whole number from ${lowest} to ${highest}, is ${value}` });
    }
  };
  range('numberOfRepayments', terms.numberOfRepayments, 1, MOST_REPAYMENTS);
  range('aprBasisPoints', terms.aprBasisPoints, 0, HIGHEST_APR_BASIS_POINTS);
  if (terms.aprBasisPoints % 10 !== 0) {
    faults.push({ field: 'aprBasisPoints', message: 'must be a multiple of 10: an APR has one decimal' });
  }
  range('deferralMonths', terms.deferralMonths, 0, MOST_DEFERRAL_MONTHS);
  if (terms.firstIntervalDays !== null) {
    range('firstIntervalDays', terms.firstIntervalDays, 1, MOST_FIRST_INTERVAL_DAYS);
  }
  range('settlementFeePence', terms.settlementFeePence, 0, HIGHEST_FIXED_PENCE);
  range('minLoanPence', terms.minLoanPence, LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE);
  range('maxLoanPence', terms.maxLoanPence, LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE);
  if (terms.rateBasis === 'apr_effective') {
    if (terms.ratePpm !== null)
      faults.push({ field: 'ratePpm', message: 'must be absent: the APR is the rate' });
  } else if (terms.ratePpm === null) {
    faults.push({ field: 'ratePpm', message: `is required with the rate basis ${terms.rateBasis}` });
  } else {
    range('ratePpm', terms.ratePpm, 0, HIGHEST_RATE_PPM);
  }
  return faults;
}

function checkRule(field: 'depositMin' | 'depositMax', rule: DepositRule | null): Fault[] {
  if (rule === null) return [];
  if (isWhole(rule.basisPoints, 0, 10_000) && isWhole(rule.fixedPence, 0, HIGHEST_FIXED_PENCE)) return [];
  return [{ field, message: 'needs basis points from 0 to 10,000 and a fixed sum from 0 to 1,000,000.00' }];
}

/** Rules between fields; called once each field by itself is in range. */
function checkTogether(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const { depositMin, depositMax, firstIntervalDays, deferralMonths } = terms;
  if (terms.minLoanPence > terms.maxLoanPence) {
    const message = `${formatPence(terms.minLoanPence)} is above maxLoanPence ${formatPence(terms.maxLoanPence)}`;
    faults.push({ field: 'minLoanPence', message });
  }
  if (depositMin !== null && depositMax !== null) {
    const capped = depositMax.fixedPence > 0 && depositMin.fixedPence > depositMax.fixedPence;
    const shareless = depositMax.basisPoints === 0 && depositMin.fixedPence > 0;
    if (depositMin.basisPoints > depositMax.basisPoints || capped || shareless) {
      faults.push({ field: 'depositMin', message: 'is above depositMax: no deposit could satisfy both' });
    }
  }
  // A mean month has 365 / 12 days; a slack of one month allows for either end of the calendar.
  const expectedDays = (Math.max(1, deferralMonths) * 365) / 12;
  if (firstIntervalDays !== null && Math.abs(firstIntervalDays - expectedDays) > FIRST_INTERVAL_SLACK_DAYS) {
    const message = `${firstIntervalDays} days do not go with ${deferralMonths} months deferred`;
    faults.push({ field: 'firstIntervalDays', message });
  }
  if (terms.settlementFeePence > 0 && deferralMonths === 0) {
    faults.push({ field: 'settlementFeePence', message: 'needs a deferral within which to settle' });
  }
  if ((terms.aprBasisPoints === 0) !== (terms.finalPayment === 'remainder')) {
    faults.push({ field: 'finalPayment', message: 'must be remainder for an APR of 0, and only for that' });
  }
  return faults;
}

/**
 * Whether quotes may be priced with a product: every field in range, fields that go together, and figures that bear
 * out the APR (domain/product-figures.ts). The figures are looked at only when the fields are sound.
 * @param publishedExample figures the lender or retailer publishes, which the product must reproduce.
 * @returns every fault found; empty when the product is accepted.
 */
export function checkProduct(terms: ProductTerms, publishedExample?: PublishedExample): Fault[] {
  const faults = [
    ...checkNamesAndChoices(terms),
    ...checkNumbers(terms),
    ...checkRule('depositMin', terms.depositMin),
    ...checkRule('depositMax', terms.depositMax),
  ];
  if (faults.length > 0) return faults;
  faults.push(...checkTogether(terms));
  if (faults.length > 0) return faults;
  for (const message of checkOwnFigures(terms)) faults.push({ field: 'aprBasisPoints', message });
  if (publishedExample !== undefined) {
    for (const message of checkPublishedExample(terms, publishedExample))
      faults.push({ field: 'publishedExample', message });
  }
  return faults;
}
