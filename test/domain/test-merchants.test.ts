import * as fc from 'fast-check';
import { completeMerchant, type Merchant } from '../../domain/product';
import { checkProduct } from '../../domain/product-check';
import { priceQuote, type Quote } from '../../domain/quote';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { anyLoan, buildRequest, forAll } from './builders';

function merchant(id: string): Merchant {
  const entry = TEST_MERCHANTS.get(id);
  const completed = entry && completeMerchant(entry.merchant);
  if (completed === undefined || !('merchant' in completed)) throw new Error(`${id} is not complete`);
  return completed.merchant;
}

function quoteOf(id: string, loanPence: number, depositPence = 0): Quote {
  return priceQuote(buildRequest({ merchant: merchant(id), loanPence, depositPence }));
}

const anyDeposit = fc.integer({ min: 0, max: 200_000_000 });

it('have products that a product import accepts', () => {
  for (const { merchant } of TEST_MERCHANTS.values()) {
    for (const product of merchant.products) expect(checkProduct(product)).toEqual([]);
    const names = merchant.products.map(({ creditProduct }) => creditProduct);
    expect(new Set(names).size).toBe(names.length);
  }
});

it('M000001 offers all three kinds of credit for every amount', () => {
  forAll(300, anyLoan, anyDeposit, (loanPence, depositPence) => {
    const quote = quoteOf('M000001', loanPence, depositPence);
    expect(quote.shown).toHaveLength(3);
    expect(quote.depositAdjustment).toBeNull();
  });
});

it('M000003 never has anything that fits, and raises no deposit', () => {
  forAll(300, anyLoan, anyDeposit, (loanPence, depositPence) => {
    const nothing = { display: false, summaryHtml: '', fitted: [], withheldAsNotAuthorised: false };
    const quote = quoteOf('M000003', loanPence, depositPence);
    expect(quote).toMatchObject({ ...nothing, depositAdjustment: null });
  });
});

it('M000004 offers nothing below a price of 20.00, where half of it would be a loan below 10.00', () => {
  for (const [loanPence, depositPence] of [
    [1_999, 0],
    [1_000, 999],
    [1_500, 499],
  ] as const) {
    const quote = quoteOf('M000004', loanPence, depositPence);
    expect(quote).toMatchObject({ display: false, summaryHtml: '', shown: [] });
    expect(quote.depositAdjustment).toMatchObject({ correctedDepositPence: 1_000, affectedProducts: [] });
  }
  expect(quoteOf('M000004', 2_000)).toMatchObject({ display: true });
  expect(quoteOf('M000004', 1_000, 1_000)).toMatchObject({ display: true, depositAdjustment: null });
});
