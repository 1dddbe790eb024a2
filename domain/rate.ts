import { roundPercent } from './apr';
import { divideFloor, divideHalfUp } from './money';
import type { AnnualRateShown, ProductTerms } from './product';

/** Basis points in 1. */
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

/** Monthly rate of a product as a fraction (0.0079 = 0.79 % a month). */
export function monthlyRate(terms: RateTerms): number {
  return Math.expm1(monthlyLogRate(terms));
}

/** A fraction as basis points (two decimals of a percentage), half-up. */
function basisPoints(fraction: number): number {
  return Math.round(roundPercent(fraction * 100, 2) * 100);
}

/** Nominal yearly rate, twelve times the monthly one, in basis points, half-up. */
export function nominalAnnualBasisPoints(terms: RateTerms): number {
  if (terms.rateBasis === 'nominal_annual')
    return divideHalfUp(terms.ratePpm ?? 0, MILLIONTHS / BASIS_POINTS);
  return basisPoints(monthlyRate(terms) * 12);
}

/** Effective yearly rate, the monthly one compounded twelve times, in basis points, half-up. */
export function effectiveAnnualBasisPoints(terms: RateTerms): number {
  return basisPoints(Math.expm1(monthlyLogRate(terms) * 12));
}

/**
 * Flat yearly rate in basis points, half-up: cost / loan / years, with years = (repayments + months deferred) / 12.
 * @param costPence 0–5e10 (see MOST_TOTAL_PENCE in domain/product-check.ts), so that the numerator stays exact.
 */
export function flatAnnualBasisPoints(
  terms: Pick<ProductTerms, 'numberOfRepayments' | 'deferralMonths'>,
  loanPence: number,
  costPence: number,
): number {
  const months = terms.numberOfRepayments + terms.deferralMonths;
  return divideHalfUp(costPence * 12 * BASIS_POINTS, loanPence * months);
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
