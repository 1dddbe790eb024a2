import * as fc from 'fast-check';
import { maximumDeposit, merchantDepositRule, minimumDeposit, priceQuote } from '../../domain/quote';
import { readFinanceLink } from '../support/finance-link';
import { anyDepositMin, anyLoan, anyProduct, buildMerchant, buildRequest, forAll } from './builders';

/**
 * As a product import leaves them: interest of 5 % and more costs something at every loan, which rounding down a
 * smaller one may not (running the whole product check on each would take a minute).
 */
const anyAcceptedProduct = anyProduct.map((product) => ({
  ...product,
  aprBasisPoints: product.aprBasisPoints === 0 ? 0 : Math.max(500, product.aprBasisPoints),
}));

const anyRequest = fc
  .record({
    products: fc.array(anyAcceptedProduct, { minLength: 1, maxLength: 5 }),
    depositFloor: anyDepositMin,
    fcaAuthorised: fc.boolean(),
    showProducts: fc.boolean(),
    summaryStyle: fc.constantFrom('offer', 'headline', null),
    loanPence: anyLoan,
    depositPence: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 500_000 })),
  })
  .map(({ loanPence, depositPence, ...fields }) => {
    const merchant = buildMerchant(fields);
    return buildRequest({ merchant, loanPence, depositPence, merchantReference: 'Order 7' });
  });

const RUNS = 400;

it('every item adds up: price is loan and deposit, total is all payments, cost is total less loan; its link says so', () => {
  let items = 0;
  forAll(RUNS, anyRequest, (request) => {
    for (const item of priceQuote(request).fitted) {
      items += 1;
      expect(item.loanPence + item.depositPence).toBe(item.purchasePricePence);
      expect(item.purchasePricePence).toBe(request.loanPence + request.depositPence);
      const earlier = item.monthlyRepaymentPence * (item.product.numberOfRepayments - 1);
      expect(earlier + item.finalRepaymentPence).toBe(item.totalPayablePence);
      expect(item.totalPayablePence - item.loanPence).toBe(item.costOfCreditPence);
      const { loanPence, depositPence, product } = item;
      const named = { creditProduct: product.creditProduct, merchantReference: 'Order 7' };
      const link = { quoteId: request.quoteId, loanPence, depositPence, ...named };
      expect(readFinanceLink(item.financeUrl)).toEqual(link);
    }
  });
  expect(items).toBeGreaterThan(RUNS);
});

it('no deposit is below its rules, above its maximum or below what was asked, and no loan outside its range', () => {
  forAll(RUNS, anyRequest, (request) => {
    const { merchant, loanPence, depositPence } = request;
    const price = loanPence + depositPence;
    const wide = minimumDeposit(price, merchantDepositRule(merchant, merchant.products));
    const quote = priceQuote(request);
    for (const item of quote.fitted) {
      const own = minimumDeposit(price, item.product.depositMin);
      expect(item.depositPence).toBe(Math.max(depositPence, wide, own));
      expect(item.depositPence).toBeLessThanOrEqual(maximumDeposit(price, item.product.depositMax));
      expect(item.loanPence).toBeGreaterThanOrEqual(item.product.minLoanPence);
      expect(item.loanPence).toBeLessThanOrEqual(item.product.maxLoanPence);
    }
    const adjusted = quote.depositAdjustment;
    expect(adjusted !== null).toBe(depositPence < wide);
    if (adjusted !== null) expect(adjusted.correctedDepositPence).toBe(wide);
  });
});
