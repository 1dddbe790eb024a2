import { depositReason, maximumDeposit, merchantDepositRule, minimumDeposit } from './deposit';
import { prepareLinks, type FinanceLinks } from './finance-link';
import type { Merchant } from './merchant';
import { LOWEST_LOAN_PENCE, type Product } from './product';
import { annualRateBasisPoints } from './rate';
import { offeredProducts } from './offered-products';
import { planRepayments, type RepaymentPlan } from './repayment-plan';
import { summaryHtml } from './summary';

/** Amounts in integer pence; `loanPence + depositPence` is the purchase price. */
export interface QuoteRequest {
  readonly merchant: Merchant;
  /** Requested loan, LOWEST_LOAN_PENCE–HIGHEST_LOAN_PENCE. */
  readonly loanPence: number;
  /** Requested deposit, ≥ 0; an omitted deposit counts as 0. */
  readonly depositPence: number;
  /** The merchant's finance page, a valid https URL. */
  readonly merchantFinanceUrl: string;
  /** The partner's own reference, trimmed; null when none was sent. */
  readonly merchantReference: string | null;
  readonly quoteId: string;
  /** UK calendar day (YYYY-MM-DD) on which products must be valid. */
  readonly today: string;
}

/** One product priced for one request. All money in pence. */
export interface PricedProduct extends Omit<RepaymentPlan, 'numberOfRepayments'> {
  readonly product: Product;
  readonly purchasePricePence: number;
  readonly depositPence: number;
  readonly loanPence: number;
  readonly firstPaymentAmountPence: number;
  /** When the first payment is due, counted from drawdown. */
  readonly initialPaymentDue: { readonly value: number; readonly unit: 'days' | 'months' };
  /** The figure for `annual_interest_rate` in basis points (5.21 % = 521). */
  readonly annualRateBasisPoints: number;
  /** Deep link that starts an application for exactly this product. */
  readonly financeUrl: string;
}

/** A deposit that was raised to the merchant's minimum. */
export interface DepositAdjustment {
  readonly requestedDepositPence: number;
  readonly correctedDepositPence: number;
  readonly reason: string;
  /** Shown products whose deposit was raised; empty when no list is shown. */
  readonly affectedProducts: readonly PricedProduct[];
}

export interface Quote {
  /** Whether finance may be shown: something fits, or the merchant is not authorised and has no products at all. */
  readonly display: boolean;
  /** HTML, '' when `display` is false; at most 80 characters of visible text. */
  readonly summaryHtml: string;
  /** Every product that fitted, in the merchant's order, shown or not: stored with the quote. */
  readonly fitted: readonly PricedProduct[];
  /** What the partner is shown: `fitted`, or nothing. */
  readonly shown: readonly PricedProduct[];
  /** True when the list is withheld because the merchant may not communicate regulated promotions. */
  readonly withheldAsNotAuthorised: boolean;
  readonly depositAdjustment: DepositAdjustment | null;
}

/**
 * Prices one product, or gives null when it does not fit: its own minimum raises the deposit further, a deposit
 * above its own maximum drops it, and so does a loan outside its range.
 */
function priceProduct(
  product: Product,
  pricePence: number,
  merchantDepositPence: number,
  links: FinanceLinks,
): PricedProduct | null {
  const depositPence = Math.max(merchantDepositPence, minimumDeposit(pricePence, product.depositMin));
  if (depositPence > maximumDeposit(pricePence, product.depositMax)) return null;
  const loanPence = pricePence - depositPence;
  if (loanPence < product.minLoanPence || loanPence > product.maxLoanPence) return null;
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
    monthlyRepaymentPence: plan.monthlyRepaymentPence,
    finalRepaymentPence: plan.finalRepaymentPence,
    totalPayablePence: plan.totalPayablePence,
    costOfCreditPence: plan.costOfCreditPence,
    annualRateBasisPoints: annualRateBasisPoints(product, loanPence, plan.costOfCreditPence),
    financeUrl: links(loanPence, depositPence, product.creditProduct),
  };
}

/**
 * Prices every product of the merchant for one request. The purchase price never changes: a raised
 * deposit lowers the loan, and products are filtered after that. Nothing is thrown for a product that was accepted
 * by domain/product-check.ts.
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
  // Only a merchant that is not authorised may be without products: it has the headline for any loan that exists.
  const display = fitted.length > 0 || (merchant.products.length === 0 && loanPence >= LOWEST_LOAN_PENCE);
  const shown = merchant.fcaAuthorised && merchant.showProducts ? fitted : [];
  return {
    display,
    summaryHtml: display
      ? summaryHtml({
          fcaAuthorised: merchant.fcaAuthorised,
          summaryStyle: merchant.summaryStyle,
          // All products share the price, so one with the link's deposit has the link's loan too.
          offers: fitted.filter((offer) => offer.depositPence === depositPence),
          link: links(loanPence, depositPence, null),
        })
      : '',
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
