import { formatPounds } from './money';
import { formatApr } from './rate';

/** Longest summary in code points of visible text (spec §1, display rule 2). */
export const LONGEST_SUMMARY = 80;

const LEARN_MORE = 'Learn more';
/** Says nothing that only an authorised merchant may say: no digit, no % and no £. */
const HEADLINE = 'Spread the cost with finance.';

/** What a summary needs to know of a priced product. */
export interface SummaryOffer {
  readonly monthlyRepaymentPence: number;
  readonly product: { readonly aprBasisPoints: number };
}

export interface SummaryRequest {
  readonly fcaAuthorised: boolean;
  readonly summaryStyle: 'offer' | 'headline';
  /** The offers at exactly the link's loan and deposit, in the merchant's order; may be none. */
  readonly offers: readonly SummaryOffer[];
  /** Where "Learn more" goes. */
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
export function escapeHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;');
  if (!/[<>"']/.test(escaped)) return escaped;
  return escaped
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
  pound: '£',
};

/** What a person sees of a summary: tags stripped, entities decoded. */
export function visibleText(html: string): string {
  const text = html.replaceAll(/<(?:"[^"]*"|'[^']*'|[^'">])*>/g, '');
  return text.replaceAll(/&(#x[\da-f]+|#\d+|[a-z]+);/gi, (entity, name: string) => {
    if (/^#x/i.test(name)) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
    if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)));
    return ENTITIES[name] ?? entity;
  });
}
