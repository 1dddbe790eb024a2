import { formatPounds } from './money';
import type { Product } from './product';
import { formatApr } from './repayment-plan';

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
