import { impliedApr } from './apr';
import { formatPence } from './money';
import type { ProductTerms } from './product';
import { formatApr, paymentFlows, planRepayments, preparePlan, type RepaymentPlan } from './repayment-plan';

const LOANS_BETWEEN = 20;
/** £500,000,000. Above it a flat rate could not be computed in safe integers. */
const MOST_TOTAL_PENCE = 50_000_000_000;

/**
 * How far an implied APR may be from the stated one, in percentage points: `0.05 + 12·k·(1 + APR)² / L`,
 * with the loan L in pounds and k = 1 for half-up, 2 for floor and ceil. The first part is the rounding
 * of the APR to one decimal, the second that of the instalment to a penny.
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

function checkApr(terms: ProductTerms, loanPence: number, monthlyPence: number, finalPence: number) {
  const implied = impliedProductApr(terms, loanPence, monthlyPence, finalPence);
  const stated = terms.aprBasisPoints / 100;
  if (implied !== null && Math.abs(implied - stated) <= aprTolerance(terms, loanPence)) return null;
  const found = implied === null ? 'none' : `${implied.toFixed(3)}%`;
  return `a loan of ${formatPence(loanPence)} implies an APR of ${found}, not ${formatApr(terms.aprBasisPoints)}`;
}

/** Why a cost contradicts the APR: 0 % must cost nothing, above 0 % something. Null when it does not. */
function checkCost(terms: ProductTerms, loanPence: number, costPence: number): string | null {
  const stated = `a loan of ${formatPence(loanPence)} at ${formatApr(terms.aprBasisPoints)} APR`;
  if (terms.aprBasisPoints === 0 && costPence !== 0) return `${stated} costs ${formatPence(costPence)}`;
  if (terms.aprBasisPoints > 0 && costPence <= 0) return `${stated} costs nothing`;
  return null;
}

// Both ends of the loan range and twenty between, in equal ratios, as rounding matters for small loans.
function sampleLoans({ minLoanPence, maxLoanPence }: ProductTerms): number[] {
  const loans = new Set([minLoanPence]);
  const ratio = maxLoanPence / minLoanPence;
  for (let step = 1; step <= LOANS_BETWEEN; step += 1)
    loans.add(Math.round(minLoanPence * ratio ** (step / (LOANS_BETWEEN + 1))));
  return [...loans.add(maxLoanPence)];
}

// Tries every loan, penny by penny, whose interest the rounding of `n` instalments by up to a penny each
// could remove: those below n / (n·f − 1) pence, f being the level payment per penny lent (24,000 at most
// for 0.1 % APR from month 1).
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
 * Checks that a product's plans imply its APR for every loan, within {@link aprTolerance}, and cost
 * something only above 0 %.
 * @returns the faults
 */
function checkOwnFigures(terms: ProductTerms): string[] {
  const { levelFactor, loanGrowth } = preparePlan(terms);
  // The balance at the end must be exact too, not only the payments.
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

export interface PublishedExample extends Partial<RepaymentPlan> {
  readonly loanPence: number;
  readonly monthlyRepaymentPence: number;
}

/** The final payment of an example that publishes none: the same as the others, or what the rule leaves. */
function defaultFinal(terms: ProductTerms, example: PublishedExample, planned: number): number {
  const { loanPence, monthlyRepaymentPence: monthly } = example;
  const remainder = loanPence - monthly * (terms.numberOfRepayments - 1);
  return { equal: monthly, remainder, clear_balance: planned }[terms.finalPayment];
}

function compare(name: string, published: number | undefined, computed: number, from: string): string | null {
  if (published === undefined || published === computed) return null;
  return `the ${name} ${formatPence(published)} is not the ${formatPence(computed)} ${from}`;
}

/**
 * Checks that published figures (each in range) add up, imply the stated APR, and are what the product
 * computes.
 * @returns the faults
 */
function checkPublishedExample(terms: ProductTerms, example: PublishedExample): string[] {
  const { loanPence, monthlyRepaymentPence: monthly } = example;
  for (const pence of Object.values(example)) {
    if (pence !== undefined && !Number.isSafeInteger(pence)) return ['amounts must be whole pence'];
  }
  if (monthly <= 0) return ['the monthly repayment must be above 0'];
  if (loanPence < terms.minLoanPence || loanPence > terms.maxLoanPence)
    return [`the loan ${formatPence(loanPence)} is outside the product's loan range`];
  const plan = planRepayments(terms, loanPence);
  const final = example.finalRepaymentPence ?? defaultFinal(terms, example, plan.finalRepaymentPence);
  const total = monthly * (terms.numberOfRepayments - 1) + final;
  return [
    compare('total payable', example.totalPayablePence, total, 'the payments add up to'),
    compare('cost of credit', example.costOfCreditPence, total - loanPence, 'the payments cost'),
    checkCost(terms, loanPence, total - loanPence),
    checkApr(terms, loanPence, monthly, final),
    compare('monthly repayment', monthly, plan.monthlyRepaymentPence, 'the product computes'),
    compare('final repayment', example.finalRepaymentPence, plan.finalRepaymentPence, 'the product computes'),
  ].filter((fault) => fault !== null);
}

export interface Fault {
  /** The field at fault, or `publishedExample`. */
  readonly field: keyof ProductTerms | 'publishedExample';
  readonly message: string;
}

/** A first interval in days may be this far from the months deferred: one month. */
const FIRST_INTERVAL_SLACK_DAYS = 31;

function checkTogether(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const { depositMin, depositMax, firstIntervalDays, deferralMonths, rateBasis, ratePpm } = terms;
  if (rateBasis === 'apr_effective' && ratePpm !== null)
    faults.push({ field: 'ratePpm', message: 'must be absent: the APR is the rate' });
  if (rateBasis !== 'apr_effective' && ratePpm === null)
    faults.push({ field: 'ratePpm', message: `is required with the rate basis ${rateBasis}` });
  if (terms.minLoanPence > terms.maxLoanPence) {
    const message = `${formatPence(terms.minLoanPence)} is above maxLoanPence ${formatPence(terms.maxLoanPence)}`;
    faults.push({ field: 'minLoanPence', message });
  }
  if (depositMin !== null && depositMax !== null) {
    const capped = depositMax.fixedPence > 0 && depositMin.fixedPence > depositMax.fixedPence;
    const shareless = depositMax.basisPoints === 0 && depositMin.fixedPence > 0;
    if (depositMin.basisPoints > depositMax.basisPoints || capped || shareless)
      faults.push({ field: 'depositMin', message: 'is above depositMax: no deposit could satisfy both' });
  }
  // A mean month has 365 / 12 days. A slack of one month allows for either end of the calendar.
  const expectedDays = (Math.max(1, deferralMonths) * 365) / 12;
  if (firstIntervalDays !== null && Math.abs(firstIntervalDays - expectedDays) > FIRST_INTERVAL_SLACK_DAYS) {
    const message = `${firstIntervalDays} days do not go with ${deferralMonths} months deferred`;
    faults.push({ field: 'firstIntervalDays', message });
  }
  if (terms.settlementFeePence > 0 && deferralMonths === 0)
    faults.push({ field: 'settlementFeePence', message: 'needs a deferral within which to settle' });
  if ((terms.aprBasisPoints === 0) !== (terms.finalPayment === 'remainder'))
    faults.push({ field: 'finalPayment', message: 'must be remainder for an APR of 0, and only for that' });
  return faults;
}

/**
 * Checks whether quotes may be priced with a product: fields that go together, and then figures that
 * imply the APR.
 * @param terms each within PRODUCT_BOUNDS and PRODUCT_CHOICES
 * @param publishedExample figures that the product must reproduce
 * @returns every fault found; empty when the product is accepted
 */
export function checkProduct(terms: ProductTerms, publishedExample?: PublishedExample): Fault[] {
  const faults = checkTogether(terms);
  if (faults.length > 0) return faults;
  for (const message of checkOwnFigures(terms)) faults.push({ field: 'aprBasisPoints', message });
  if (publishedExample !== undefined) {
    for (const message of checkPublishedExample(terms, publishedExample))
      faults.push({ field: 'publishedExample', message });
  }
  return faults;
}
