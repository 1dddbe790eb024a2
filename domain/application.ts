import type { ApplicationState } from './application-states';

export interface ApplicationTerms {
  readonly loanPence: number;
  readonly depositPence: number;
  readonly creditProduct: string | null;
}

/** A change of an application's state, as its notification reports it. No personal data. */
export interface ApplicationChange extends ApplicationTerms {
  readonly eventId: string;
  readonly environment: 'sandbox' | 'live';
  readonly createdAt: Date;
  readonly sequence: number;
  readonly applicationId: string;
  readonly quoteId: string;
  readonly merchantReference: string | null;
  readonly merchantId: string;
  readonly lender: string;
  readonly lenderReference: string;
  readonly status: ApplicationState;
  readonly previousStatus: ApplicationState | null;
  readonly occurredAt: Date;
}

/** Writes the body that a partner is sent, byte for byte. */
export type WriteChange = (change: ApplicationChange) => string;

interface FittedOffer extends ApplicationTerms {
  readonly lender: string;
  readonly creditProduct: string;
}

interface QuotedOffers {
  readonly merchantReference: string | null;
  readonly fitted: readonly FittedOffer[];
  /** The amounts in the link of the summary. No product need have them. */
  readonly summary: { readonly loanPence: number; readonly depositPence: number };
}

interface WantedOffer extends ApplicationTerms {
  readonly lender: string;
  readonly merchantReference: string | null;
}

export type OfferRefusal = 'product_not_quoted' | 'amounts_not_quoted' | 'merchant_reference_differs';

/**
 * Compares the terms of a wanted application with the quote (docs/decisions/applications.md, "Link of the
 * summary").
 * @returns null when it was quoted: with a product, that product of the lender for these amounts; without
 * one, the amounts of any product of the lender or of the summary's link
 */
export function offerRefusal(offers: QuotedOffers, wanted: WantedOffer): OfferRefusal | null {
  if (wanted.merchantReference !== null && wanted.merchantReference !== offers.merchantReference)
    return 'merchant_reference_differs';
  const meant = namedOffers(offers.fitted, wanted).filter(({ lender }) => lender === wanted.lender);
  if (meant.length === 0) return 'product_not_quoted';
  const quoted = wanted.creditProduct === null ? [...meant, offers.summary] : meant;
  const found = quoted.some(
    ({ loanPence, depositPence }) => loanPence === wanted.loanPence && depositPence === wanted.depositPence,
  );
  return found ? null : 'amounts_not_quoted';
}

export function namedOffers(
  fitted: readonly FittedOffer[],
  { creditProduct }: Pick<WantedOffer, 'creditProduct'>,
): readonly FittedOffer[] {
  return fitted.filter((one) => creditProduct === null || one.creditProduct === creditProduct);
}
