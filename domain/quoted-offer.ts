import type { ApplicationTerms } from './application';

interface FittedOffer {
  readonly creditProduct: string;
  readonly loanPence: number;
  readonly depositPence: number;
}

/** What a quote offered. Money in pence. */
export interface QuotedOffers {
  readonly merchantReference: string | null;
  /** Every product that fitted, shown or not. */
  readonly fitted: readonly FittedOffer[];
  /**
   * What the link of the summary carries: the basket, with the deposit that the merchant asks for. No product need
   * have these amounts. Null when no summary was displayed.
   */
  readonly summary: { readonly loanPence: number; readonly depositPence: number } | null;
}

/** Why an application cannot be opened from a quote. */
export type OfferRefusal =
  'nothing_fitted' | 'product_not_quoted' | 'amounts_not_quoted' | 'merchant_reference_differs';

/**
 * Holds what an application is to be opened for against what was quoted. Every link that a quote returned opens one
 * (docs/decisions.md, "Link of the summary").
 * @returns null when it was quoted: with a product, that product for these amounts; without one, the amounts of any
 * product that fitted or those of the summary's link.
 */
export function offerRefusal(
  offers: QuotedOffers,
  wanted: ApplicationTerms & { readonly merchantReference: string | null },
): OfferRefusal | null {
  const { fitted, summary } = offers;
  if (wanted.merchantReference !== null && wanted.merchantReference !== offers.merchantReference) {
    return 'merchant_reference_differs';
  }
  if (fitted.length === 0 && summary === null) return 'nothing_fitted';
  const ofProduct = fitted.filter(
    ({ creditProduct }) => wanted.creditProduct === null || creditProduct === wanted.creditProduct,
  );
  if (ofProduct.length === 0 && wanted.creditProduct !== null) return 'product_not_quoted';
  const quoted = wanted.creditProduct === null && summary !== null ? [...ofProduct, summary] : ofProduct;
  const found = quoted.some(
    ({ loanPence, depositPence }) => loanPence === wanted.loanPence && depositPence === wanted.depositPence,
  );
  return found ? null : 'amounts_not_quoted';
}
