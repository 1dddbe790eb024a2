import { roundPercent } from './apr';
import { divideFloor, divideHalfUp } from './money';
import type { AnnualRateShown, ProductTerms } from './product';

const BASIS_POINTS = 10_000;
/** Millionths in 1: the unit of `ratePpm`. */
const MILLIONTHS = 1_000_000;

type RateTerms = Pick<ProductTerms, 'rateBasis' | 'ratePpm' | 'aprBasisPoints'>;

/**
 * ln(1 + monthly rate) of a product: what interest compounds with. Kept as a logarithm because the growth over
 * any number of months, and the annuity, are then exact to the last digits even at tiny rates.
 * `apr_effective`: (1 + APR)^(1/12) − 1; `monthly_rate`: the rate itself; `nominal_annual`: a twelfth of it.
 */
export function monthlyLogRate({ rateBasis, ratePpm, aprBasisPoints }: RateTerms): number {
  if (rateBasis === 'apr_effective') return Math.log1p(aprBasisPoints / BASIS_POINTS) / 12;
  const rate = (ratePpm ?? 0) / MILLIONTHS;
  return Math.log1p(rateBasis === 'monthly_rate' ? rate : rate / 12);
}

/** A fraction as basis points (two decimals of a percentage), half-up. */
function basisPoints(fraction: number): number {
  return Math.round(roundPercent(fraction * 100, 2) * 100);
}

/** Nominal yearly rate, twelve times the monthly one, in basis points, half-up. */
export function nominalAnnualBasisPoints(terms: RateTerms): number {
  if (terms.rateBasis === 'nominal_annual')
    return divideHalfUp(terms.ratePpm ?? 0, MILLIONTHS / BASIS_POINTS);
  return basisPoints(Math.expm1(monthlyLogRate(terms)) * 12);
}

/** Effective yearly rate, the monthly one compounded twelve times, in basis points, half-up. */
export function effectiveAnnualBasisPoints(terms: RateTerms): number {
  return basisPoints(Math.expm1(monthlyLogRate(terms) * 12));
}

const DAYS_IN_YEAR = 365;

/**
 * Time from drawdown to the last payment, in units of 1 / (12 · 365) of a year, so that months and days are whole
 * numbers: the first interval (`firstIntervalDays`, else max(1, `deferralMonths`) months), then `numberOfRepayments` − 1
 * months.
 */
function termUnits({
  numberOfRepayments,
  deferralMonths,
  firstIntervalDays,
}: Pick<ProductTerms, 'numberOfRepayments' | 'deferralMonths' | 'firstIntervalDays'>): number {
  const first =
    firstIntervalDays === null ? Math.max(1, deferralMonths) * DAYS_IN_YEAR : firstIntervalDays * 12;
  return first + (numberOfRepayments - 1) * DAYS_IN_YEAR;
}

/**
 * Flat yearly rate in basis points, half-up: cost / loan / years, with the years from drawdown to the last payment.
 * Without a deferral that is n / 12 for n repayments; deferred by d months it is (d − 1 + n) / 12.
 * @param costPence ≥ 0, a safe integer.
 * @param loanPence > 0, a safe integer.
 */
export function flatAnnualBasisPoints(
  terms: Pick<ProductTerms, 'numberOfRepayments' | 'deferralMonths' | 'firstIntervalDays'>,
  loanPence: number,
  costPence: number,
): number {
  // The largest cost times the units of a year is beyond the safe integers.
  const numerator = BigInt(costPence) * BigInt(12 * DAYS_IN_YEAR * BASIS_POINTS);
  const denominator = BigInt(loanPence) * BigInt(termUnits(terms));
  return Number((2n * numerator + denominator) / (2n * denominator));
}

const ANNUAL_RATES: Readonly<
  Record<AnnualRateShown, (terms: ProductTerms, loanPence: number, costPence: number) => number>
> = {
  flat: flatAnnualBasisPoints,
  nominal: nominalAnnualBasisPoints,
  effective: effectiveAnnualBasisPoints,
};

/** The figure for `annual_interest_rate` in basis points: flat, nominal or effective, as the product says. */
export function annualRateBasisPoints(terms: ProductTerms, loanPence: number, costPence: number): number {
  return ANNUAL_RATES[terms.annualRateShown](terms, loanPence, costPence);
}

/** An APR as it is stated, with one decimal: 990 → "9.9%", 1000 → "10.0%"; interest-free is "0%". */
export function formatApr(aprBasisPoints: number): string {
  if (aprBasisPoints === 0) return '0%';
  const tenths = divideHalfUp(aprBasisPoints, 10);
  return `${divideFloor(tenths, 10)}.${tenths % 10}%`;
}

/** A rate in basis points with its two decimals: 521 → "5.21%". */
export function formatRate(rateBasisPoints: number): string {
  return `${(rateBasisPoints / 100).toFixed(2)}%`;
}

/** A share in basis points without needless zeros: 1000 → "10%", 1250 → "12.5%". */
export function formatShare(shareBasisPoints: number): string {
  return `${shareBasisPoints / 100}%`;
}
