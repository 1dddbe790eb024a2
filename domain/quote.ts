import type { Merchant } from './merchant';
import type { Product } from './product';

/** What a quote is asked for; amounts in integer pence, `loanPence + depositPence` being the purchase price. */
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
export interface PricedProduct {
  readonly product: Product;
  readonly purchasePricePence: number;
  readonly depositPence: number;
  readonly loanPence: number;
  readonly firstPaymentAmountPence: number;
  /** When the first payment is due, counted from drawdown. */
  readonly initialPaymentDue: { readonly value: number; readonly unit: 'days' | 'months' };
  readonly monthlyRepaymentPence: number;
  readonly finalRepaymentPence: number;
  readonly totalPayablePence: number;
  readonly costOfCreditPence: number;
  /** The figure for `annual_interest_rate` in basis points (5.21 % = 521). */
  readonly annualRateBasisPoints: number;
  /** Deep link that starts an application for exactly this product. */
  readonly financeUrl: string;
}

/** A deposit that was raised to the merchant's minimum. */
export interface DepositAdjustment {
  readonly requestedDepositPence: number;
  readonly correctedDepositPence: number;
  /** For people: why it was raised. */
  readonly reason: string;
  /** Shown products whose deposit was raised; empty when no list is shown. */
  readonly affectedProducts: readonly PricedProduct[];
}

/** What a quote request is answered with. */
export interface Quote {
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

/** Prices every product of the merchant for one request (design §4). */
export declare function priceQuote(request: QuoteRequest): Quote;
