import { roundPercent, type CashFlow } from './apr';
import { divideFloor, divideHalfUp, DIVISIONS, roundPence } from './money';
import type { ProductTerms } from './product';

const BASIS_POINTS = 10_000;
const MILLIONTHS = 1_000_000;

type RateTerms = Pick<ProductTerms, 'rateBasis' | 'ratePpm' | 'aprBasisPoints'>;

// ln(1 + monthly rate) of a product. As a logarithm, growth over any number of months and the annuity are
// exact to the last digits even at tiny rates. `apr_effective`: (1 + APR)^(1/12) − 1; `monthly_rate`: the
// rate itself; `nominal_annual`: a twelfth of it.
function monthlyLogRate({ rateBasis, ratePpm, aprBasisPoints }: RateTerms): number {
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

type TimeTerms = Pick<ProductTerms, 'numberOfRepayments' | 'deferralMonths' | 'firstIntervalDays'>;

// Time from drawdown to the last payment, in units of 1 / (12 · 365) of a year, so that months and days
// are whole numbers: the first interval, then `numberOfRepayments` − 1 months.
function termUnits({ numberOfRepayments, deferralMonths, firstIntervalDays }: TimeTerms): number {
  const first =
    firstIntervalDays === null ? Math.max(1, deferralMonths) * DAYS_IN_YEAR : firstIntervalDays * 12;
  return first + (numberOfRepayments - 1) * DAYS_IN_YEAR;
}

/**
 * Flat yearly rate in basis points, half-up: cost / loan / years, with the years from drawdown to the
 * last payment: n / 12 for n repayments, or (d − 1 + n) / 12 when deferred by d months.
 * @param costPence ≥ 0, a safe integer
 * @param loanPence > 0, a safe integer
 */
export function flatAnnualBasisPoints(terms: TimeTerms, loanPence: number, costPence: number): number {
  // The largest cost times the units of a year exceeds the safe integers.
  const numerator = BigInt(costPence) * BigInt(12 * DAYS_IN_YEAR * BASIS_POINTS);
  const denominator = BigInt(loanPence) * BigInt(termUnits(terms));
  return Number((2n * numerator + denominator) / (2n * denominator));
}

/** The figure for `annual_interest_rate` in basis points: flat, nominal or effective, as the product says. */
export function annualRateBasisPoints(terms: ProductTerms, loanPence: number, costPence: number): number {
  const { annualRateShown } = terms;
  if (annualRateShown === 'flat') return flatAnnualBasisPoints(terms, loanPence, costPence);
  return annualRateShown === 'nominal' ? nominalAnnualBasisPoints(terms) : effectiveAnnualBasisPoints(terms);
}

/** An APR with one decimal: 990 → "9.9%", 1000 → "10.0%". Interest-free is "0%". */
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

/** The repayments of a loan: `numberOfRepayments − 1` monthly payments, then the final one, in pence. */
export interface RepaymentPlan {
  readonly monthlyRepaymentPence: number;
  readonly finalRepaymentPence: number;
  /** The sum of all payments, without the deposit. */
  readonly totalPayablePence: number;
  readonly costOfCreditPence: number;
}

interface PreparedPlan {
  readonly terms: ProductTerms;
  readonly interestFree: boolean;
  /** Unrounded level payment per penny lent. */
  readonly levelFactor: number;
  /** The growth of a penny lent until the final payment. */
  readonly loanGrowth: number;
  /** The growth of a penny in each earlier payment until the final one. */
  readonly paymentsGrowth: number;
}

function firstPaymentYears(terms: Pick<ProductTerms, 'deferralMonths' | 'firstIntervalDays'>): number {
  return terms.firstIntervalDays === null
    ? Math.max(1, terms.deferralMonths) / 12
    : terms.firstIntervalDays / 365;
}

function prepare(terms: ProductTerms): PreparedPlan {
  const n = terms.numberOfRepayments;
  const logRate = monthlyLogRate(terms);
  if (logRate === 0)
    return { terms, interestFree: true, levelFactor: 1 / n, loanGrowth: 1, paymentsGrowth: n - 1 };
  const rate = Math.expm1(logRate);
  // Interest runs from day 1; from the first payment on, the payments are an annuity due:
  //   level = L·growth·i / ((1 + i)·(1 − (1 + i)^−n)), which for a first payment at month f is
  //   L·(1 + i)^(f − 1)·i / (1 − (1 + i)^−n).
  const logGrowth = firstPaymentYears(terms) * 12 * logRate;
  return {
    terms,
    interestFree: false,
    levelFactor: (Math.exp(logGrowth - logRate) * rate) / -Math.expm1(-n * logRate),
    loanGrowth: Math.exp(logGrowth + (n - 1) * logRate),
    paymentsGrowth: (Math.exp(logRate) * Math.expm1((n - 1) * logRate)) / rate,
  };
}

const preparedPlans = new WeakMap<ProductTerms, PreparedPlan>();

/** The factors of a product, computed once for each `terms` object, which must not change. */
export function preparePlan(terms: ProductTerms): PreparedPlan {
  let prepared = preparedPlans.get(terms);
  if (prepared === undefined) {
    prepared = prepare(terms);
    preparedPlans.set(terms, prepared);
  }
  return prepared;
}

/** The final payment after equal payments of `monthlyPence`. The balance is cleared half-up. */
function finalRepayment(prepared: PreparedPlan, loanPence: number, monthlyPence: number): number {
  if (prepared.interestFree) return loanPence - monthlyPence * (prepared.terms.numberOfRepayments - 1);
  if (prepared.terms.finalPayment === 'equal') return monthlyPence;
  return roundPence(loanPence * prepared.loanGrowth - monthlyPence * prepared.paymentsGrowth, 'half_up');
}

/**
 * Plan of a product for a loan: the level payment by the product's own rounding, the final payment by its
 * rule. Where rounding up would leave nothing for the last payment, it is rounded down. A single
 * repayment is the final one.
 * @param loanPence integer pence, LOWEST_LOAN_PENCE–HIGHEST_LOAN_PENCE
 */
export function planRepayments(terms: ProductTerms, loanPence: number): RepaymentPlan {
  const prepared = preparePlan(terms);
  const n = terms.numberOfRepayments;
  const exact = loanPence * prepared.levelFactor;
  let monthly = prepared.interestFree
    ? DIVISIONS[terms.instalmentRounding](loanPence, n)
    : roundPence(exact, terms.instalmentRounding);
  let final = finalRepayment(prepared, loanPence, monthly);
  if (final <= 0) {
    monthly = prepared.interestFree ? divideFloor(loanPence, n) : roundPence(exact, 'floor');
    final = finalRepayment(prepared, loanPence, monthly);
  }
  if (n === 1) monthly = final;
  const totalPayablePence = monthly * (n - 1) + final;
  return {
    monthlyRepaymentPence: monthly,
    finalRepaymentPence: final,
    totalPayablePence,
    costOfCreditPence: totalPayablePence - loanPence,
  };
}

/** Years from drawdown to each payment, the later ones whole months after the first. */
function paymentYears(terms: ProductTerms): number[] {
  const first = firstPaymentYears(terms);
  return Array.from({ length: terms.numberOfRepayments }, (_, month) => first + month / 12);
}

/** The payments as cash flows in pence, for the APR: `monthlyPence` each, `finalPence` at the end. */
export function paymentFlows(terms: ProductTerms, monthlyPence: number, finalPence: number): CashFlow[] {
  const last = terms.numberOfRepayments - 1;
  return paymentYears(terms).map((years, index): CashFlow => [
    years,
    index === last ? finalPence : monthlyPence,
  ]);
}
