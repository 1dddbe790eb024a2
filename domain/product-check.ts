import { formatPence } from './money';
import { checkOwnFigures } from './product-figures';
import type { ProductTerms } from './product';
import { checkPublishedExample, type PublishedExample } from './published-example';

/** Why a product is refused. */
export interface Fault {
  /** The field at fault, or `publishedExample`. */
  readonly field: keyof ProductTerms | 'publishedExample';
  /** For the person who imports it; names the figures. */
  readonly message: string;
}

/** How far a first interval in days may be from the months deferred: one month of either length. */
const FIRST_INTERVAL_SLACK_DAYS = 31;

/** Rules between fields. */
function checkTogether(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const { depositMin, depositMax, firstIntervalDays, deferralMonths, rateBasis, ratePpm } = terms;
  if (rateBasis === 'apr_effective' && ratePpm !== null)
    faults.push({ field: 'ratePpm', message: 'must be absent: the APR is the rate' });
  if (rateBasis !== 'apr_effective' && ratePpm === null)
    faults.push({ field: 'ratePpm', message: `is required with the rate basis ${rateBasis}` });
  if (terms.minLoanPence > terms.maxLoanPence) {
    const message = `${formatPence(terms.minLoanPence)} is above maxLoanPence ${formatPence(terms.maxLoanPence)}`;
    faults.push({ field: 'minLoanPence', message });
  }
  if (depositMin !== null && depositMax !== null) {
    const capped = depositMax.fixedPence > 0 && depositMin.fixedPence > depositMax.fixedPence;
    const shareless = depositMax.basisPoints === 0 && depositMin.fixedPence > 0;
    if (depositMin.basisPoints > depositMax.basisPoints || capped || shareless) {
      faults.push({ field: 'depositMin', message: 'is above depositMax: no deposit could satisfy both' });
    }
  }
  // A mean month has 365 / 12 days; a slack of one month allows for either end of the calendar.
  const expectedDays = (Math.max(1, deferralMonths) * 365) / 12;
  if (firstIntervalDays !== null && Math.abs(firstIntervalDays - expectedDays) > FIRST_INTERVAL_SLACK_DAYS) {
    const message = `${firstIntervalDays} days do not go with ${deferralMonths} months deferred`;
    faults.push({ field: 'firstIntervalDays', message });
  }
  if (terms.settlementFeePence > 0 && deferralMonths === 0) {
    faults.push({ field: 'settlementFeePence', message: 'needs a deferral within which to settle' });
  }
  if ((terms.aprBasisPoints === 0) !== (terms.finalPayment === 'remainder')) {
    faults.push({ field: 'finalPayment', message: 'must be remainder for an APR of 0, and only for that' });
  }
  return faults;
}

/**
 * Whether quotes may be priced with a product: fields that go together, and figures that bear out the APR
 * (domain/product-figures.ts). The figures are looked at only when the fields are sound.
 * @param terms each by itself within PRODUCT_BOUNDS and PRODUCT_CHOICES, as the form of an import has it.
 * @param publishedExample figures the lender or retailer publishes, which the product must reproduce.
 * @returns every fault found; empty when the product is accepted.
 */
export function checkProduct(terms: ProductTerms, publishedExample?: PublishedExample): Fault[] {
  const faults = checkTogether(terms);
  if (faults.length > 0) return faults;
  for (const message of checkOwnFigures(terms)) faults.push({ field: 'aprBasisPoints', message });
  if (publishedExample !== undefined) {
    for (const message of checkPublishedExample(terms, publishedExample))
      faults.push({ field: 'publishedExample', message });
  }
  return faults;
}
