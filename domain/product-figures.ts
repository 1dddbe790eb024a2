import { impliedApr } from './apr';
import { formatPence } from './money';
import type { ProductTerms } from './product';
import { formatApr } from './rate';
import { paymentFlows, planRepayments, preparePlan } from './repayment-plan';

/** Loans looked at between the two ends of a loan range. */
const LOANS_BETWEEN = 20;
/** £500,000,000: above it a flat rate could no longer be computed in safe integers (domain/rate.ts). */
const MOST_TOTAL_PENCE = 50_000_000_000;

/**
 * How far an implied APR may be from the stated one, in percentage points: `0.05 + 12·k·(1 + APR)² / L`, with the
 * loan L in pounds and k = 1 for half-up, 2 for floor and ceil. The first part is the rounding of the
 * APR to one decimal, the second that of the instalment to a penny.
 */
export function aprTolerance(terms: ProductTerms, loanPence: number): number {
  const k = terms.instalmentRounding === 'half_up' ? 1 : 2;
  return 0.05 + (12 * k * (1 + terms.aprBasisPoints / 10_000) ** 2) / (loanPence / 100);
}

/** APR in percent implied by payments of a product, unrounded; null when they imply none. */
export function impliedProductApr(
  terms: ProductTerms,
  loanPence: number,
  monthlyPence: number,
  finalPence: number,
): number | null {
  return impliedApr([[0, loanPence]], paymentFlows(terms, monthlyPence, finalPence));
}

/** Why payments do not bear out the stated APR, or null when they do. */
export function checkApr(
  terms: ProductTerms,
  loanPence: number,
  monthlyPence: number,
  finalPence: number,
): string | null {
  const implied = impliedProductApr(terms, loanPence, monthlyPence, finalPence);
  const stated = terms.aprBasisPoints / 100;
  if (implied !== null && Math.abs(implied - stated) <= aprTolerance(terms, loanPence)) return null;
  const found = implied === null ? 'none' : `${implied.toFixed(3)}%`;
  return `a loan of ${formatPence(loanPence)} implies an APR of ${found}, not ${formatApr(terms.aprBasisPoints)}`;
}

/** Why a cost does not go with the APR: 0 % must cost nothing, above 0 % something. Null when it does. */
export function checkCost(terms: ProductTerms, loanPence: number, costPence: number): string | null {
  const stated = `a loan of ${formatPence(loanPence)} at ${formatApr(terms.aprBasisPoints)} APR`;
  if (terms.aprBasisPoints === 0 && costPence !== 0) return `${stated} costs ${formatPence(costPence)}`;
  if (terms.aprBasisPoints > 0 && costPence <= 0) return `${stated} costs nothing`;
  return null;
}

/** Both ends of the loan range and twenty loans between, in equal ratios: rounding matters most for small loans. */
function sampleLoans({ minLoanPence, maxLoanPence }: ProductTerms): number[] {
  const loans = new Set([minLoanPence]);
  const ratio = maxLoanPence / minLoanPence;
  for (let step = 1; step <= LOANS_BETWEEN; step += 1) {
    loans.add(Math.round(minLoanPence * ratio ** (step / (LOANS_BETWEEN + 1))));
  }
  return [...loans.add(maxLoanPence)];
}

/**
 * Tries every loan, penny by penny, whose interest the rounding of `n` instalments by up to a penny each could eat
 * up: those below n / (n·f − 1) pence, f being the level payment per penny lent (24,000 at the most for 0.1 % APR
 * from month 1). Only for products whose other figures are sound.
 */
function checkEverySmallCost(terms: ProductTerms): string | null {
  const n = terms.numberOfRepayments;
  const interestPerPenny = n * preparePlan(terms).levelFactor - 1;
  const last = terms.aprBasisPoints === 0 ? 0 : Math.min(terms.maxLoanPence, Math.ceil(n / interestPerPenny));
  for (let loanPence = terms.minLoanPence; loanPence <= last; loanPence += 1) {
    const fault = checkCost(terms, loanPence, planRepayments(terms, loanPence).costOfCreditPence);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * Whether a product's own plans bear out its APR over its whole loan range: the implied APR within
 * {@link aprTolerance}, a cost exactly when the APR is above 0, payments that are all above 0.
 * @param terms with every field in range.
 * @returns the faults found, at most one of each sort.
 */
export function checkOwnFigures(terms: ProductTerms): string[] {
  const { levelFactor, loanGrowth } = preparePlan(terms);
  // A balance that is carried to the end must itself stay exact, not only what is paid.
  const carried = terms.finalPayment === 'clear_balance' ? loanGrowth : 0;
  const largest = terms.maxLoanPence * Math.max(levelFactor * terms.numberOfRepayments, carried);
  if (!(largest <= MOST_TOTAL_PENCE))
    return ['the rate over the term is beyond what can be computed exactly'];
  let cost: string | null = null;
  let apr: string | null = null;
  let payment: string | null = null;
  for (const loanPence of sampleLoans(terms)) {
    const plan = planRepayments(terms, loanPence);
    const { monthlyRepaymentPence: monthly, finalRepaymentPence: final } = plan;
    if (monthly <= 0 || final <= 0)
      payment ??= `a loan of ${formatPence(loanPence)} leaves a payment of nothing`;
    cost ??= checkCost(terms, loanPence, plan.costOfCreditPence);
    apr ??= checkApr(terms, loanPence, monthly, final);
  }
  const faults = [payment, cost, apr].filter((fault) => fault !== null);
  const smallCost = faults.length > 0 ? null : checkEverySmallCost(terms);
  return smallCost === null ? faults : [smallCost];
}
