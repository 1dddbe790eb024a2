import * as fc from 'fast-check';
import {
  LONGEST_SUMMARY,
  summaryHtml,
  type SummaryOffer,
  type SummaryRequest,
  maximumDeposit,
  minimumDeposit,
  priceQuote,
} from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { type Merchant, offeredProducts, type DepositRule, type Product } from '../../domain/product';
import { formatPounds } from '../../domain/money';
import { planRepayments } from '../../domain/repayment-plan';
import {
  anyDepositMin,
  anyLoan,
  buildRequest,
  forAll,
  INTEREST_FREE,
  linkedAmounts,
  merchantOf,
} from './builders';

const LINK = 'https://shop.example/f?a=1&loan_amount=1200.00#"><script>';
const HEADLINE = 'Spread the cost with finance. Learn more';

function offer(monthlyRepaymentPence: number, aprBasisPoints: number): SummaryOffer {
  return { monthlyRepaymentPence, product: { aprBasisPoints } };
}

function text(offers: SummaryOffer[], changes: Partial<SummaryRequest> = {}): string {
  return visibleText(
    summaryHtml({ fcaAuthorised: true, summaryStyle: 'offer', offers, link: LINK, ...changes }),
  );
}

describe('the text of a summary', () => {
  it.each([
    [10_521, 990, 'Spread the cost from £105.21 a month at 9.9% APR representative. Learn more'],
    [10_521, 1_000, 'Spread the cost from £105.21 a month at 10.0% APR representative. Learn more'],
    [1_234_567, 1_990, 'Spread the cost from £12,345.67 a month at 19.9% APR representative. Learn more'],
    [123_456_789, 1_990, 'From £1,234,567.89 a month at 19.9% APR representative. Learn more'],
    [5_000, 0, 'Interest-free credit from £50.00 a month at 0% APR representative. Learn more'],
    [123_456_789, 0, 'Interest-free from £1,234,567.89 a month, 0% APR representative. Learn more'],
  ])('for %d pence a month at %d basis points', (pence, apr, expected) => {
    expect(text([offer(pence, apr)])).toBe(expected);
    expect(Array.from(expected).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
  });

  it('is the plain headline when no template fits', () => {
    expect(text([offer(Number.MAX_SAFE_INTEGER, 1_000_000_000)])).toBe(HEADLINE);
  });

  it('names the lowest monthly price, the first in order among equals', () => {
    expect(text([offer(300, 990), offer(200, 1_990), offer(200, 0)])).toContain('£2.00 a month at 19.9% APR');
  });

  it('is the plain headline for a merchant that chose it or is not authorised', () => {
    expect(text([offer(300, 990)], { summaryStyle: 'headline' })).toBe(HEADLINE);
    expect(text([offer(300, 990)], { fcaAuthorised: false })).toBe(HEADLINE);
    expect(HEADLINE).not.toMatch(/[\d%£]/);
  });
});

it('is one link, escaped, and the text within the limit', () => {
  const offers = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 50_000_000_000 }), fc.integer({ min: 0, max: 100_000 })),
    { minLength: 1, maxLength: 4 },
  );
  forAll(300, offers, fc.webUrl({ withQueryParameters: true, withFragments: true }), (pairs, url) => {
    const link = `${url}"'<>`;
    const html = summaryHtml({
      fcaAuthorised: true,
      summaryStyle: 'offer',
      offers: pairs.map(([pence, tenths]) => offer(pence, tenths * 10)),
      link,
    });
    expect(Array.from(visibleText(html)).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
    const href = html.match(/^[^<>]* <a href="([^"<>']*)">Learn more<\/a>$/)?.[1];
    expect(visibleText(href ?? '')).toBe(link);
  });
});

/** Whether a product can be had at exactly these amounts, from its own terms alone. */
function isOfferedAt(product: Product, loanPence: number, depositPence: number): boolean {
  const price = loanPence + depositPence;
  return (
    loanPence >= product.minLoanPence &&
    loanPence <= product.maxLoanPence &&
    depositPence >= minimumDeposit(price, product.depositMin) &&
    depositPence <= maximumDeposit(price, product.depositMax)
  );
}

type Shown = 'price' | 'headline' | 'nothing';

/** Quotes, and checks the summary against the products that can be had at the amounts of its own link. */
function checkSummary(merchant: Merchant, loanPence: number, depositPence: number): Shown {
  const request = buildRequest({ merchant, loanPence, depositPence });
  const quote = priceQuote(request);
  if (!quote.display) {
    expect(quote.summaryHtml).toBe('');
    return 'nothing';
  }
  const [loan = 0, deposit = 0] = linkedAmounts(quote.summaryHtml).map((text) =>
    Math.round(Number(text) * 100),
  );
  expect(loan + deposit).toBe(loanPence + depositPence);
  const atLink = offeredProducts(merchant.products, request.today).filter((product) =>
    isOfferedAt(product, loan, deposit),
  );
  const text = visibleText(quote.summaryHtml);
  if (!merchant.fcaAuthorised || merchant.summaryStyle === 'headline' || atLink.length === 0) {
    expect(text).toBe(HEADLINE);
    return 'headline';
  }
  const lowest = Math.min(...atLink.map((product) => planRepayments(product, loan).monthlyRepaymentPence));
  expect(text).toContain(`${formatPounds(lowest)} a month`);
  return 'price';
}

test('a price in the summary can be had at the amounts of its link, for any mix of deposit rules', () => {
  const rule = (basisPoints: number, fixedPence = 0): DepositRule => ({ basisPoints, fixedPence });
  const anyMax = fc.constantFrom(null, null, null, rule(0), rule(1_000), rule(5_000), rule(10_000, 20_000));
  const anyOwnProduct = fc
    .record({
      depositMin: fc.oneof(fc.constantFrom(null, rule(1_000), rule(2_000, 5_000)), anyDepositMin),
      depositMax: anyMax,
      numberOfRepayments: fc.constantFrom(3, 6, 12, 24, 36),
      interestFree: fc.boolean(),
      deferralMonths: fc.constantFrom(0, 0, 6),
      minLoanPence: fc.constantFrom(1_000, 25_000),
      maxLoanPence: fc.constantFrom(200_000_000, 200_000_000, 90_000),
    })
    .map(({ interestFree, ...fields }): Partial<Product> => ({
      ...fields,
      ...(interestFree && INTEREST_FREE),
    }));
  const anyMerchant = fc
    .record({
      products: fc.array(anyOwnProduct, { minLength: 1, maxLength: 5 }),
      depositFloor: fc.constantFrom(null, null, rule(1_000), rule(0, 15_000)),
      showProducts: fc.boolean(),
      fcaAuthorised: fc.constantFrom(true, true, true, false),
      summaryStyle: fc.constantFrom('offer', 'offer', 'offer', 'headline'),
    })
    .map(({ products, ...fields }): Merchant => ({ ...merchantOf(...products), ...fields }));

  const counts = { price: 0, headline: 0, nothing: 0 };
  let noneAtLink = 0;
  forAll(700, anyMerchant, anyLoan, fc.oneof(fc.constant(0), fc.nat(60)), (merchant, loan, share) => {
    const deposit = Math.floor((loan * share) / 100);
    const shown = checkSummary(merchant, loan, deposit);
    counts[shown] += 1;
    if (shown === 'headline' && merchant.fcaAuthorised && merchant.summaryStyle === 'offer') noneAtLink += 1;
  });
  expect(Math.min(counts.price, counts.nothing, noneAtLink)).toBeGreaterThan(20);
});
