import type { Merchant } from './merchant';
import { divideCeil, divideFloor, formatPounds } from './money';
import type { DepositRule, Product } from './product';
import { formatShare } from './rate';

const BASIS_POINTS = 10_000;

/** price × basisPoints / 10,000 by the given division, split so that no product leaves the safe integers. */
function shareOf(
  pricePence: number,
  basisPoints: number,
  divide: (numerator: number, denominator: number) => number,
): number {
  const rest = pricePence % BASIS_POINTS;
  return ((pricePence - rest) / BASIS_POINTS) * basisPoints + divide(rest * basisPoints, BASIS_POINTS);
}

/**
 * Smallest deposit a rule asks for: the larger of its share of the price, rounded **up** to the penny, and its fixed
 * sum; never more than the price. Pence.
 * @param pricePence purchase price, ≥ 0.
 * @param rule null: no minimum, so 0.
 */
export function minimumDeposit(pricePence: number, rule: DepositRule | null): number {
  if (rule === null) return 0;
  const share = shareOf(pricePence, rule.basisPoints, divideCeil);
  return Math.min(pricePence, Math.max(share, rule.fixedPence));
}

/**
 * Largest deposit a rule allows: its share of the price rounded **down**, and its fixed sum when that is above 0,
 * whichever is smaller. Pence.
 * @param pricePence purchase price, ≥ 0.
 * @param rule null: up to the price.
 */
export function maximumDeposit(pricePence: number, rule: DepositRule | null): number {
  if (rule === null) return pricePence;
  const share = shareOf(pricePence, rule.basisPoints, divideFloor);
  return rule.fixedPence > 0 ? Math.min(share, rule.fixedPence) : share;
}

/** The minimum that all products have in common; null when they differ, have none, or there are none. */
export function sharedDepositRule(products: readonly Product[]): DepositRule | null {
  const first = products[0]?.depositMin ?? null;
  if (first === null) return null;
  const shared = products.every(
    ({ depositMin }) =>
      depositMin !== null &&
      depositMin.basisPoints === first.basisPoints &&
      depositMin.fixedPence === first.fixedPence,
  );
  return shared ? first : null;
}

/** The merchant-wide minimum: the merchant's floor if set, else the rule that all its active products share, else none. */
export function merchantDepositRule(
  merchant: Pick<Merchant, 'depositFloor'>,
  activeProducts: readonly Product[],
): DepositRule | null {
  return merchant.depositFloor ?? sharedDepositRule(activeProducts);
}

/** For people: why a deposit was raised, naming whichever part of the rule decided at this price. */
export function depositReason(pricePence: number, rule: DepositRule): string {
  if (rule.fixedPence > pricePence) return 'A deposit of the whole purchase price is required.';
  const byShare = shareOf(pricePence, rule.basisPoints, divideCeil) >= rule.fixedPence;
  return byShare
    ? `A minimum deposit of ${formatShare(rule.basisPoints)} of the purchase price is required.`
    : `A minimum deposit of ${formatPounds(rule.fixedPence)} is required.`;
}
