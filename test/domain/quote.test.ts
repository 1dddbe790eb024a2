import type { Merchant } from '../../domain/product';
import { depositReason, maximumDeposit, minimumDeposit, priceQuote } from '../../domain/quote';
import type { QuoteRequest } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { buildMerchant, buildRequest, forAll, linkedAmounts, merchantOf, names } from './builders';
import * as fc from 'fast-check';

const TEN_PERCENT = { basisPoints: 1_000, fixedPence: 0 };
const TEN_PERCENT_OR_50 = { basisPoints: 1_000, fixedPence: 5_000 };
const HALF = { basisPoints: 5_000, fixedPence: 0 };

/** The names of the products that are shown. */
const fitting = (merchant: Merchant, changes: Partial<QuoteRequest> = {}) =>
  names(priceQuote(buildRequest({ merchant, ...changes })).shown);

describe('which products fit', () => {
  it('are those valid on the day, first and last day included', () => {
    const merchant = merchantOf(
      { creditProduct: 'from today', validFrom: '2026-11-21' },
      { creditProduct: 'to today', validTo: '2026-11-21' },
      { creditProduct: 'from tomorrow', validFrom: '2026-11-22' },
      { creditProduct: 'to yesterday', validTo: '2026-11-20' },
    );
    expect(fitting(merchant)).toEqual(['from today', 'to today']);
  });
});

describe('a list that is withheld', () => {
  it('for one that is not authorised and has nothing that fits keeps the notice', () => {
    const merchant = { ...merchantOf({ maxLoanPence: 1_000 }), fcaAuthorised: false };
    const nothing = { display: false, summaryHtml: '', shown: [], withheldAsNotAuthorised: true };
    expect(priceQuote(buildRequest({ merchant }))).toMatchObject(nothing);
  });

  it('for one that is not authorised and has no products at all keeps the headline, for every loan that exists', () => {
    const merchant = buildMerchant({ fcaAuthorised: false, products: [] });
    const quote = priceQuote(buildRequest({ merchant }));
    expect(quote).toMatchObject({ display: true, shown: [], fitted: [], withheldAsNotAuthorised: true });
    expect(visibleText(quote.summaryHtml)).toBe('Spread the cost with finance. Learn more');
    expect(linkedAmounts(quote.summaryHtml)).toEqual(['1200.00', '0.00']);
    expect(quote.depositAdjustment).toBeNull();
    const at = (loanPence: number) =>
      priceQuote(buildRequest({ merchant: { ...merchant, depositFloor: HALF }, loanPence }));
    expect(linkedAmounts(at(2_000).summaryHtml)).toEqual(['10.00', '10.00']);
    // The floor leaves a loan below 10.00, which nobody offers.
    expect(at(1_999)).toMatchObject({ display: false, summaryHtml: '', withheldAsNotAuthorised: true });
  });
});

it('a share is exact for every price there is, and rounded up for the minimum and the maximum', () => {
  const price = fc.integer({ min: 0, max: 200_000_000_000_000 });
  forAll(1_000, price, fc.integer({ min: 0, max: 10_000 }), (pricePence, basisPoints) => {
    const rule = { basisPoints, fixedPence: 0 };
    const up = (BigInt(pricePence) * BigInt(basisPoints) + 9_999n) / 10_000n;
    expect(BigInt(minimumDeposit(pricePence, rule))).toBe(up);
    expect(BigInt(maximumDeposit(pricePence, rule))).toBe(up);
  });
});

it.each([
  [100_000, TEN_PERCENT, '10% of the purchase price'],
  [100_000, { basisPoints: 1_250, fixedPence: 0 }, '12.5% of the purchase price'],
  [100_000, { basisPoints: 0, fixedPence: 5_000 }, '£50.00'],
  [30_000, TEN_PERCENT_OR_50, '£50.00'],
  [5_000, TEN_PERCENT_OR_50, '£50.00'],
  [80_000, TEN_PERCENT_OR_50, '10% of the purchase price'],
])('the reason at a price of %d pence names the part of %j that decides: %s', (price, rule, part) => {
  expect(depositReason(price, rule)).toBe(`A minimum deposit of ${part} is required.`);
});

describe('the deposit of a quote', () => {
  it('is raised to the whole price at most, and then nothing fits', () => {
    const merchant = buildMerchant({ depositFloor: { basisPoints: 0, fixedPence: 500_000 } });
    const quote = priceQuote(buildRequest({ merchant }));
    expect(quote).toMatchObject({ display: false, summaryHtml: '', shown: [] });
    expect(quote.depositAdjustment).toMatchObject({
      correctedDepositPence: 120_000,
      reason: 'A deposit of the whole purchase price is required.',
      affectedProducts: [],
    });
  });
});
