import * as fc from 'fast-check';
import { maximumDeposit, minimumDeposit, priceQuote } from '../../domain/quote';
import { type Merchant, offeredProducts, type DepositRule, type Product } from '../../domain/product';
import { formatPounds } from '../../domain/money';
import { planRepayments } from '../../domain/repayment-plan';
import { visibleText } from '../support/visible-text';
import {
  anyDepositMin,
  anyLoan,
  buildMerchant,
  buildProduct,
  buildRequest,
  linkedAmounts,
  merchantOf,
} from './builders';

const HEADLINE = 'Spread the cost with finance. Learn more';

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

describe('a price in the summary can be had at the amounts of its link', () => {
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
    .map(({ interestFree, ...fields }) =>
      buildProduct({ ...fields, ...(interestFree && { aprBasisPoints: 0, finalPayment: 'remainder' }) }),
    );
  const anyMerchant = fc
    .record({
      products: fc.array(anyOwnProduct, { minLength: 1, maxLength: 5 }),
      depositFloor: fc.constantFrom(null, null, rule(1_000), rule(0, 15_000)),
      showProducts: fc.boolean(),
      fcaAuthorised: fc.constantFrom(true, true, true, false),
      summaryStyle: fc.constantFrom('offer', 'offer', 'offer', 'headline'),
    })
    .map(({ products, ...fields }) =>
      buildMerchant({
        ...fields,
        products: products.map((product, index) => ({ ...product, creditProduct: `P${index}` })),
      }),
    );

  it('with and without floor and list, for any mix of deposit rules', () => {
    const counts = { price: 0, headline: 0, nothing: 0 };
    let noneAtLink = 0;
    fc.assert(
      fc.property(anyMerchant, anyLoan, fc.oneof(fc.constant(0), fc.nat(60)), (merchant, loan, share) => {
        const deposit = Math.floor((loan * share) / 100);
        const shown = checkSummary(merchant, loan, deposit);
        counts[shown] += 1;
        if (shown === 'headline' && merchant.fcaAuthorised && merchant.summaryStyle === 'offer')
          noneAtLink += 1;
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(counts.price, counts.nothing, noneAtLink)).toBeGreaterThan(60);
  });

  it.each([
    ['no floor', null, true],
    ['no floor and no list', null, false],
    ['a floor', rule(500), true],
    ['a floor and no list', rule(500), false],
  ])('for every deposit of one basket, with %s', (_name, depositFloor, showProducts) => {
    const merchant = {
      ...merchantOf(
        { numberOfRepayments: 3, depositMax: rule(0) },
        { numberOfRepayments: 12, depositMin: rule(1_000) },
        { numberOfRepayments: 24, depositMin: rule(2_000, 3_000) },
      ),
      depositFloor,
      showProducts,
    };
    const ends: [Shown, number][] = [];
    for (let deposit = 0; deposit <= 4_000; deposit += 1) {
      const shown = checkSummary(merchant, 12_000 - deposit, deposit);
      if (ends.at(-1)?.[0] === shown) ends.pop();
      ends.push([shown, deposit]);
    }
    // 10 % of 120.00 is 12.00. Without a floor the first product can be had at a deposit of nothing.
    const first: [Shown, number][] = depositFloor === null ? [['price', 0]] : [];
    expect(ends).toEqual([...first, ['headline', 1_199], ['price', 4_000]]);
  });
});
