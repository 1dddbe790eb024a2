import { prepareLinks, type FinanceLinks } from './finance-link';
import { divideCeil, formatPounds } from './money';
import { type Merchant, type DepositRule, type Product, LOWEST_LOAN_PENCE, offeredProducts } from './product';
import {
  formatApr,
  formatShare,
  annualRateBasisPoints,
  planRepayments,
  type RepaymentPlan,
} from './repayment-plan';

const BASIS_POINTS = 10_000;

/**
 * price × basisPoints / 10,000, rounded **up**, and split to stay within the safe integers. A minimum and a
 * maximum use it both: rounded in two ways, a share that is both would fit no price that it does not divide.
 */
function shareOf(pricePence: number, basisPoints: number): number {
  const rest = pricePence % BASIS_POINTS;
  return ((pricePence - rest) / BASIS_POINTS) * basisPoints + divideCeil(rest * basisPoints, BASIS_POINTS);
}

/**
 * Smallest deposit of a rule, in pence: the larger of its share of the price, rounded **up**, and its
 * fixed sum, but never more than the price.
 * @param pricePence purchase price, ≥ 0
 * @param rule null: no minimum, so 0
 */
export function minimumDeposit(pricePence: number, rule: DepositRule | null): number {
  if (rule === null) return 0;
  const share = shareOf(pricePence, rule.basisPoints);
  return Math.min(pricePence, Math.max(share, rule.fixedPence));
}

/**
 * Largest deposit of a rule, in pence: its share of the price, rounded **up**, or its fixed sum above 0
 * if that is smaller. So it is never below what a minimum of the same share asks for.
 * @param pricePence purchase price, ≥ 0
 * @param rule null: up to the price
 */
export function maximumDeposit(pricePence: number, rule: DepositRule | null): number {
  if (rule === null) return pricePence;
  const share = shareOf(pricePence, rule.basisPoints);
  return rule.fixedPence > 0 ? Math.min(share, rule.fixedPence) : share;
}

/** The merchant-wide minimum: the merchant's floor, else the rule shared by all its active products. */
export function merchantDepositRule(
  { depositFloor }: Pick<Merchant, 'depositFloor'>,
  activeProducts: readonly Product[],
): DepositRule | null {
  const first = activeProducts[0]?.depositMin ?? null;
  if (depositFloor !== null || first === null) return depositFloor;
  const shared = activeProducts.every(
    ({ depositMin }) =>
      depositMin !== null &&
      depositMin.basisPoints === first.basisPoints &&
      depositMin.fixedPence === first.fixedPence,
  );
  return shared ? first : null;
}

/** Tells people why a deposit was raised, by the part of the rule that decided at this price. */
export function depositReason(pricePence: number, rule: DepositRule): string {
  if (rule.fixedPence > pricePence) return 'A deposit of the whole purchase price is required.';
  const byShare = shareOf(pricePence, rule.basisPoints) >= rule.fixedPence;
  return byShare
    ? `A minimum deposit of ${formatShare(rule.basisPoints)} of the purchase price is required.`
    : `A minimum deposit of ${formatPounds(rule.fixedPence)} is required.`;
}

export const LONGEST_SUMMARY = 80;

const LEARN_MORE = 'Learn more';
/** It has no digit, no % and no £, which only an authorised merchant may use. */
const HEADLINE = 'Spread the cost with finance.';

export interface SummaryOffer {
  /** The amount of the only repayment, where there is one. */
  readonly monthlyRepaymentPence: number;
  readonly initialPaymentDue: { readonly value: number; readonly unit: 'days' | 'months' };
  readonly product: Pick<Product, 'aprBasisPoints' | 'rateType' | 'numberOfRepayments'>;
}

/** The text, or null when it is too long with its link. The templates have only single code units. */
const fitting = (text: string): string | null =>
  `${text} ${LEARN_MORE}`.length <= LONGEST_SUMMARY ? text : null;

/**
 * An offer in the longest template that fits; null when none does. A variable rate is called so in every
 * template that it has, and one repayment is not "a month" (docs/partner-guide.md, "Words of the summary").
 */
function offerText({ monthlyRepaymentPence, initialPaymentDue, product }: SummaryOffer): string | null {
  const price = formatPounds(monthlyRepaymentPence);
  const apr = formatApr(product.aprBasisPoints);
  const end = product.rateType === 'variable' ? 'APR representative (variable).' : 'APR representative.';
  if (product.numberOfRepayments === 1) {
    const { value, unit } = initialPaymentDue;
    return fitting(`Pay ${price} after ${value} ${value === 1 ? unit.slice(0, -1) : unit} at ${apr} ${end}`);
  }
  const short = `From ${price} a month at ${apr} ${end}`;
  if (product.rateType === 'variable') return fitting(short);
  if (product.aprBasisPoints > 0) return fitting(`Spread the cost f${short.slice(1)}`) ?? fitting(short);
  return (
    fitting(`Interest-free credit from ${price} a month at ${apr} ${end}`) ??
    fitting(`Interest-free from ${price} a month, ${apr} ${end}`)
  );
}

/**
 * The HTML finance offer summary: at most {@link LONGEST_SUMMARY} characters of visible text and one link.
 * @param offer null: the plain headline, which also stands where no template has room for the offer
 */
export function summaryHtml(offer: SummaryOffer | null, link: string): string {
  const text = offer === null ? null : offerText(offer);
  return `${text ?? HEADLINE} <a href="${escapeHtml(link)}">${LEARN_MORE}</a>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Amounts are in integer pence; `loanPence + depositPence` is the purchase price. */
export interface QuoteRequest {
  readonly merchant: Merchant;
  /** Requested loan, LOWEST_LOAN_PENCE–HIGHEST_LOAN_PENCE. */
  readonly loanPence: number;
  /** Requested deposit, ≥ 0; an omitted deposit counts as 0. */
  readonly depositPence: number;
  readonly merchantFinanceUrl: string;
  /** The partner's own reference, trimmed; null when none was sent. */
  readonly merchantReference: string | null;
  readonly quoteId: string;
  /** UK calendar day (YYYY-MM-DD) on which products must be valid. */
  readonly today: string;
}

export interface PricedProduct extends RepaymentPlan {
  readonly product: Product;
  readonly purchasePricePence: number;
  readonly depositPence: number;
  readonly loanPence: number;
  readonly firstPaymentAmountPence: number;
  /** When the first payment is due, counted from drawdown. */
  readonly initialPaymentDue: { readonly value: number; readonly unit: 'days' | 'months' };
  readonly annualRateBasisPoints: number;
  readonly financeUrl: string;
}

export interface DepositAdjustment {
  readonly requestedDepositPence: number;
  readonly correctedDepositPence: number;
  readonly reason: string;
  readonly affectedProducts: readonly PricedProduct[];
}

export interface Quote {
  /** Whether finance may be shown: something fits, or an unauthorised merchant has no products at all. */
  readonly display: boolean;
  /** HTML, '' when `display` is false; at most 80 characters of visible text. */
  readonly summaryHtml: string;
  /** Deposit of the summary's link: as requested, or raised to the merchant's minimum. */
  readonly depositPence: number;
  /** Every product that fitted, in the merchant's order, which is stored with the quote. */
  readonly fitted: readonly PricedProduct[];
  /** What the partner is shown: `fitted`, or nothing. */
  readonly shown: readonly PricedProduct[];
  /** Whether the list is withheld because the merchant may not communicate regulated promotions. */
  readonly withheldAsNotAuthorised: boolean;
  readonly depositAdjustment: DepositAdjustment | null;
}

type Limits = Pick<Product, 'depositMin' | 'depositMax' | 'minLoanPence' | 'maxLoanPence'>;

/** Deposit of a product, in pence. @param merchantDepositPence as requested, or raised to the merchant's minimum */
export const productDeposit = (product: Limits, pricePence: number, merchantDepositPence: number) =>
  Math.max(merchantDepositPence, minimumDeposit(pricePence, product.depositMin));

/** Why a product does not fit a price with a deposit, both in pence; null: it does. */
export function misfit(product: Limits, pricePence: number, depositPence: number) {
  if (depositPence > maximumDeposit(pricePence, product.depositMax)) return 'deposit_above_maximum';
  const loanPence = pricePence - depositPence;
  if (loanPence < product.minLoanPence) return 'loan_below_minimum';
  return loanPence > product.maxLoanPence ? 'loan_above_maximum' : null;
}

/** Prices a product; null when its deposit is above the maximum or its loan out of range. */
function priceProduct(
  product: Product,
  pricePence: number,
  merchantDepositPence: number,
  links: FinanceLinks,
): PricedProduct | null {
  const depositPence = productDeposit(product, pricePence, merchantDepositPence);
  if (misfit(product, pricePence, depositPence) !== null) return null;
  const loanPence = pricePence - depositPence;
  const plan = planRepayments(product, loanPence);
  const firstPayments = { monthly_repayment: plan.monthlyRepaymentPence, deposit: depositPence, none: 0 };
  return {
    product,
    purchasePricePence: pricePence,
    depositPence,
    loanPence,
    firstPaymentAmountPence: firstPayments[product.firstPaymentType],
    initialPaymentDue:
      product.firstIntervalDays === null
        ? { value: Math.max(1, product.deferralMonths), unit: 'months' }
        : { value: product.firstIntervalDays, unit: 'days' },
    // Not `...plan`: the spread cost a tenth of the CPU of a quote (bench:quote).
    monthlyRepaymentPence: plan.monthlyRepaymentPence,
    finalRepaymentPence: plan.finalRepaymentPence,
    totalPayablePence: plan.totalPayablePence,
    costOfCreditPence: plan.costOfCreditPence,
    annualRateBasisPoints: annualRateBasisPoints(product, loanPence, plan.costOfCreditPence),
    financeUrl: links(loanPence, depositPence, product.creditProduct),
  };
}

/**
 * The offer that the summary names: the lowest repayment, and of equal ones the first, among those with the
 * deposit of its link. Products share the price, so these have the link's loan too.
 * @returns null for the headline: when there is none, for a merchant that may not communicate regulated
 * promotions, and by the merchant's choice; a hidden list, without which there is no representative
 * example, needs the choice of an offer
 */
function advertised(
  { fcaAuthorised, summaryStyle, showProducts }: Merchant,
  fitted: readonly PricedProduct[],
  depositPence: number,
): PricedProduct | null {
  const style = summaryStyle ?? (showProducts ? 'offer' : 'headline');
  if (!fcaAuthorised || style === 'headline') return null;
  let best: PricedProduct | null = null;
  for (const offer of fitted)
    if (
      offer.depositPence === depositPence &&
      (best === null || offer.monthlyRepaymentPence < best.monthlyRepaymentPence)
    )
      best = offer;
  return best;
}

/**
 * Prices every product of the merchant. The price never changes: a raised deposit lowers the loan, and
 * products are filtered after that.
 */
export function priceQuote(request: QuoteRequest): Quote {
  const { merchant, today } = request;
  const pricePence = request.loanPence + request.depositPence;
  const active = offeredProducts(merchant.products, today);
  const rule = merchantDepositRule(merchant, active);
  const depositPence = Math.max(request.depositPence, minimumDeposit(pricePence, rule));
  const links = prepareLinks(request);
  const fitted = active
    .map((product) => priceProduct(product, pricePence, depositPence, links))
    .filter((priced) => priced !== null);
  const loanPence = pricePence - depositPence;
  // Only an unauthorised merchant may be without products. It has the headline for any possible loan.
  const display = fitted.length > 0 || (merchant.products.length === 0 && loanPence >= LOWEST_LOAN_PENCE);
  const shown = merchant.fcaAuthorised && merchant.showProducts ? fitted : [];
  return {
    display,
    summaryHtml: display
      ? summaryHtml(advertised(merchant, fitted, depositPence), links(loanPence, depositPence, null))
      : '',
    depositPence,
    fitted,
    shown,
    withheldAsNotAuthorised: !merchant.fcaAuthorised,
    depositAdjustment:
      rule !== null && depositPence > request.depositPence
        ? {
            requestedDepositPence: request.depositPence,
            correctedDepositPence: depositPence,
            reason: depositReason(pricePence, rule),
            affectedProducts: shown,
          }
        : null,
  };
}
