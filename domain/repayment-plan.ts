import type { CashFlow } from './apr';
import { DIVISIONS, divideFloor, roundPence } from './money';
import type { ProductTerms } from './product';
import { monthlyLogRate } from './rate';

/** What a loan is repaid with: `numberOfRepayments − 1` monthly payments, then the final one. Money in pence. */
export interface RepaymentPlan {
  readonly numberOfRepayments: number;
  readonly monthlyRepaymentPence: number;
  readonly finalRepaymentPence: number;
  /** All payments together; the deposit is not part of it. */
  readonly totalPayablePence: number;
  /** Total less loan. */
  readonly costOfCreditPence: number;
}

/** What depends on the product alone, so that a quote costs a few multiplications. */
interface PreparedPlan {
  readonly terms: ProductTerms;
  readonly interestFree: boolean;
  /** Unrounded level payment per penny lent. */
  readonly levelFactor: number;
  /** What a penny lent has grown to at the final payment. */
  readonly loanGrowth: number;
  /** What a penny paid with each earlier payment has grown to at the final payment. */
  readonly paymentsGrowth: number;
}

/** Years from drawdown to the first payment: days / 365 where the agreement counts days, else whole months / 12. */
function firstPaymentYears(terms: Pick<ProductTerms, 'deferralMonths' | 'firstIntervalDays'>): number {
  return terms.firstIntervalDays === null
    ? Math.max(1, terms.deferralMonths) / 12
    : terms.firstIntervalDays / 365;
}

function prepare(terms: ProductTerms): PreparedPlan {
  const n = terms.numberOfRepayments;
  const logRate = monthlyLogRate(terms);
  if (logRate === 0) {
    return { terms, interestFree: true, levelFactor: 1 / n, loanGrowth: 1, paymentsGrowth: n - 1 };
  }
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

/** The factors of a product, computed once for each `terms` object (which must not change afterwards). */
export function preparePlan(terms: ProductTerms): PreparedPlan {
  let prepared = preparedPlans.get(terms);
  if (prepared === undefined) {
    prepared = prepare(terms);
    preparedPlans.set(terms, prepared);
  }
  return prepared;
}

/** What the final payment must be after equal payments of `monthlyPence`; the balance is cleared half-up. */
function finalRepayment(prepared: PreparedPlan, loanPence: number, monthlyPence: number): number {
  if (prepared.interestFree) return loanPence - monthlyPence * (prepared.terms.numberOfRepayments - 1);
  if (prepared.terms.finalPayment === 'equal') return monthlyPence;
  return roundPence(loanPence * prepared.loanGrowth - monthlyPence * prepared.paymentsGrowth, 'half_up');
}

/**
 * Plan of a product for a loan: the level payment by the product's own rounding, the final payment by its rule.
 * Where a payment rounded up would leave nothing or less for the last one, it is rounded down instead. A single
 * repayment is the final one.
 * @param loanPence integer pence, LOWEST_LOAN_PENCE–HIGHEST_LOAN_PENCE.
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
    numberOfRepayments: n,
    monthlyRepaymentPence: monthly,
    finalRepaymentPence: final,
    totalPayablePence,
    costOfCreditPence: totalPayablePence - loanPence,
  };
}

/** Years from drawdown to each payment, the later ones whole months after the first. */
export function paymentYears(terms: ProductTerms): number[] {
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
