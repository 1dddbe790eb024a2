import { Decimal } from 'decimal.js';
import type { ProductTerms } from '../../domain/product';

/** Fifty digits, so that no rounding of ours can be repeated by accident. */
const D = Decimal.clone({ precision: 50 });

const MODES = { half_up: Decimal.ROUND_HALF_UP, floor: Decimal.ROUND_FLOOR, ceil: Decimal.ROUND_CEIL };

function monthlyGrowth(terms: ProductTerms): Decimal {
  const ppm = new D(terms.ratePpm ?? 0).div(1_000_000);
  if (terms.rateBasis === 'monthly_rate') return ppm.plus(1);
  if (terms.rateBasis === 'nominal_annual') return ppm.div(12).plus(1);
  return new D(terms.aprBasisPoints).div(10_000).plus(1).pow(new D(1).div(12));
}

/**
 * The plan computed another way: the level payment from the sum of its discount factors, one by one, and the final
 * payment by carrying the balance from month to month.
 */
export function oraclePlan(terms: ProductTerms, loanPence: number): { monthly: number; final: number } {
  const n = terms.numberOfRepayments;
  const growth = monthlyGrowth(terms);
  const months =
    terms.firstIntervalDays === null
      ? new D(Math.max(1, terms.deferralMonths))
      : new D(terms.firstIntervalDays).mul(12).div(365);
  let discount = growth.pow(months.neg());
  let worth = new D(0);
  for (let k = 0; k < n; k += 1) {
    worth = worth.plus(discount);
    discount = discount.div(growth);
  }
  const exact = new D(loanPence).div(worth);
  const finalAfter = (monthly: Decimal): Decimal => {
    if (terms.finalPayment === 'equal') return monthly;
    let balance = new D(loanPence).mul(growth.pow(months));
    for (let k = 1; k < n; k += 1) balance = balance.minus(monthly).mul(growth);
    return balance.toDecimalPlaces(0, Decimal.ROUND_HALF_UP);
  };
  let monthly = exact.toDecimalPlaces(0, MODES[terms.instalmentRounding]);
  if (finalAfter(monthly).lte(0)) monthly = exact.toDecimalPlaces(0, Decimal.ROUND_FLOOR);
  const final = finalAfter(monthly);
  return { monthly: n === 1 ? final.toNumber() : monthly.toNumber(), final: final.toNumber() };
}
