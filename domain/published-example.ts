import { formatPence } from './money';
import type { ProductTerms } from './product';
import { checkApr, checkCost } from './product-figures';
import { planRepayments } from './repayment-plan';

/** Figures a lender or retailer publishes for a product, in pence; what is not published is left out. */
export interface PublishedExample {
  readonly loanPence: number;
  readonly monthlyRepaymentPence: number;
  readonly finalRepaymentPence?: number | undefined;
  readonly totalPayablePence?: number | undefined;
  readonly costOfCreditPence?: number | undefined;
}

/** The final payment of an example that does not publish one: the same as the others, or what the rule leaves. */
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
 * Whether published figures hold together (payments add up to the total, total less loan is the cost), imply the
 * stated APR, and are what the product computes.
 * @param terms with every field in range.
 * @returns the faults found.
 */
export function checkPublishedExample(terms: ProductTerms, example: PublishedExample): string[] {
  const { loanPence, monthlyRepaymentPence: monthly } = example;
  for (const pence of Object.values(example)) {
    if (pence !== undefined && !Number.isSafeInteger(pence)) return ['amounts must be whole pence'];
  }
  if (monthly <= 0) return ['the monthly repayment must be above 0'];
  if (loanPence < terms.minLoanPence || loanPence > terms.maxLoanPence) {
    return [`the loan ${formatPence(loanPence)} is outside the product's loan range`];
  }
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
