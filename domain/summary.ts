import { formatPounds } from './money';
import { formatApr } from './rate';

/** Longest summary in code points of visible text. */
export const LONGEST_SUMMARY = 80;

const LEARN_MORE = 'Learn more';
/** Says nothing that only an authorised merchant may say: no digit, no % and no £. */
const HEADLINE = 'Spread the cost with finance.';

export interface SummaryOffer {
  readonly monthlyRepaymentPence: number;
  readonly product: { readonly aprBasisPoints: number };
}

export interface SummaryRequest {
  readonly fcaAuthorised: boolean;
  readonly summaryStyle: 'offer' | 'headline';
  /** The offers at exactly the link's loan and deposit, in the merchant's order; may be none. */
  readonly offers: readonly SummaryOffer[];
  readonly link: string;
}

/** The lowest monthly price; of equal ones the first in the merchant's order. */
function bestOffer(offers: readonly SummaryOffer[]): SummaryOffer | undefined {
  return offers.reduce<SummaryOffer | undefined>(
    (best, offer) => (best && best.monthlyRepaymentPence <= offer.monthlyRepaymentPence ? best : offer),
    undefined,
  );
}

/** Texts for an offer, the longest first. */
function offerTexts({ monthlyRepaymentPence, product }: SummaryOffer): string[] {
  const price = formatPounds(monthlyRepaymentPence);
  const apr = formatApr(product.aprBasisPoints);
  if (product.aprBasisPoints === 0) {
    return [
      `Interest-free credit from ${price} a month at ${apr} APR representative.`,
      `Interest-free from ${price} a month, ${apr} APR representative.`,
    ];
  }
  return [
    `Spread the cost from ${price} a month at ${apr} APR representative.`,
    `From ${price} a month at ${apr} APR representative.`,
  ];
}

/**
 * The HTML finance offer summary: at most {@link LONGEST_SUMMARY} characters of visible text and one link. An
 * authorised merchant gets its best offer, in the longest template that fits. The headline stands when there is no
 * offer at the link's amounts, when the merchant chose it, and when it may not communicate regulated promotions.
 */
export function summaryHtml({ fcaAuthorised, summaryStyle, offers, link }: SummaryRequest): string {
  const best = fcaAuthorised && summaryStyle === 'offer' ? bestOffer(offers) : undefined;
  const texts = best === undefined ? [] : offerTexts(best);
  const fitting = texts.find((text) => fits(`${text} ${LEARN_MORE}`));
  return `${fitting ?? HEADLINE} <a href="${escapeHtml(link)}">${LEARN_MORE}</a>`;
}

/** Characters are code points here, of which a text has no more than code units. */
function fits(text: string): boolean {
  return text.length <= LONGEST_SUMMARY || [...text].length <= LONGEST_SUMMARY;
}

/** Escapes text for HTML content and double- or single-quoted attributes. */
function escapeHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;');
  if (!/[<>"']/.test(escaped)) return escaped;
  return escaped
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
