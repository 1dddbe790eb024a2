import { formatPence } from './money';
import { checkOwnFigures } from './product-figures';
import type { DepositRule, ProductTerms } from './product';
import {
  isPossibleDeposit,
  isWithin,
  LONGEST_PRODUCT_NAME,
  PRODUCT_BOUNDS,
  PRODUCT_CHOICES,
} from './product-bounds';
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
function checkNamesAndChoices(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  for (const field of ['lender', 'creditProduct'] as const) {
    const name = terms[field];
    if (
      name === '' ||
      name !== name.trim() ||
      name.length > LONGEST_PRODUCT_NAME ||
      /[\p{Cc}\p{Cs}]/u.test(name)
    ) {
      faults.push({
        field,
        message: `must be 1–${LONGEST_PRODUCT_NAME} printable characters, without spaces around them`,
      });
    }
  }
  for (const field of Object.keys(PRODUCT_CHOICES) as (keyof typeof PRODUCT_CHOICES)[]) {
    const choices: readonly string[] = PRODUCT_CHOICES[field];
    if (!choices.includes(terms[field]))
      faults.push({ field, message: `must be one of ${choices.join(', ')}` });
  }
  return faults;
}

function checkNumbers(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const range = (field: keyof typeof PRODUCT_BOUNDS & keyof ProductTerms): void => {
    const [lowest, highest] = PRODUCT_BOUNDS[field];
    const value = terms[field];
    if (!isWithin(value, [lowest, highest])) {
      faults.push({ field, message: `must be a whole number from ${lowest} to ${highest}, is ${value}` });
    }
  };
  range('numberOfRepayments');
  range('aprBasisPoints');
  if (terms.aprBasisPoints % 10 !== 0) {
    faults.push({ field: 'aprBasisPoints', message: 'must be a multiple of 10: an APR has one decimal' });
  }
  range('deferralMonths');
  if (terms.firstIntervalDays !== null) range('firstIntervalDays');
  range('settlementFeePence');
  range('minLoanPence');
  range('maxLoanPence');
  if (terms.rateBasis === 'apr_effective') {
    if (terms.ratePpm !== null)
      faults.push({ field: 'ratePpm', message: 'must be absent: the APR is the rate' });
  } else if (terms.ratePpm === null) {
    faults.push({ field: 'ratePpm', message: `is required with the rate basis ${terms.rateBasis}` });
  } else {
    range('ratePpm');
  }
  return faults;
}

function checkRule(field: 'depositMin' | 'depositMax', rule: DepositRule | null): Fault[] {
  if (rule === null || isPossibleDeposit(rule.basisPoints, rule.fixedPence)) return [];
  return [{ field, message: 'needs basis points from 0 to 10,000 and a fixed sum from 0 to 1,000,000.00' }];
}

/** Rules between fields; called once each field by itself is in range. */
function checkTogether(terms: ProductTerms): Fault[] {
  const faults: Fault[] = [];
  const { depositMin, depositMax, firstIntervalDays, deferralMonths } = terms;
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
 * Whether quotes may be priced with a product: every field in range, fields that go together, and figures that bear
 * out the APR (domain/product-figures.ts). The figures are looked at only when the fields are sound.
 * @param publishedExample figures the lender or retailer publishes, which the product must reproduce.
 * @returns every fault found; empty when the product is accepted.
 */
export function checkProduct(terms: ProductTerms, publishedExample?: PublishedExample): Fault[] {
  const alone = [
    ...checkNamesAndChoices(terms),
    ...checkNumbers(terms),
    ...checkRule('depositMin', terms.depositMin),
    ...checkRule('depositMax', terms.depositMax),
  ];
  const faults = alone.length > 0 ? alone : checkTogether(terms);
  if (faults.length > 0) return faults;
  for (const message of checkOwnFigures(terms)) faults.push({ field: 'aprBasisPoints', message });
  if (publishedExample !== undefined) {
    for (const message of checkPublishedExample(terms, publishedExample))
      faults.push({ field: 'publishedExample', message });
  }
  return faults;
}
