import type { Merchant } from '../../domain/product';
import { depositReason, maximumDeposit, minimumDeposit, priceQuote } from '../../domain/quote';
import type { QuoteRequest } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import {
  buildMerchant,
  buildProduct,
  buildRequest,
  forAll,
  linkedAmounts,
  merchantOf,
  names,
} from './builders';
import * as fc from 'fast-check';

const TEN_PERCENT = { basisPoints: 1_000, fixedPence: 0 };
const TEN_PERCENT_OR_50 = { basisPoints: 1_000, fixedPence: 5_000 };
const HALF = { basisPoints: 5_000, fixedPence: 0 };

/** The names of the products that are shown. */
const fitting = (merchant: Merchant, changes: Partial<QuoteRequest> = {}) =>
  names(priceQuote(buildRequest({ merchant, ...changes })).shown);

describe('a priced product', () => {
  it('has every figure of the published 9.9 % example', () => {
    const quote = priceQuote(buildRequest());
    expect(quote.shown).toEqual([
      {
        product: buildProduct(),
        purchasePricePence: 120_000,
        depositPence: 0,
        loanPence: 120_000,
        firstPaymentAmountPence: 10_521,
        initialPaymentDue: { value: 1, unit: 'months' },
        monthlyRepaymentPence: 10_521,
        finalRepaymentPence: 10_521,
        totalPayablePence: 126_252,
        costOfCreditPence: 6_252,
        annualRateBasisPoints: 521,
        financeUrl:
          'https://shop.example/finance?loan_amount=1200.00&customer_deposit=0.00&credit_product=Credit&service_quote_id=qte_01',
      },
    ]);
    expect(quote.display).toBe(true);
    expect(quote.depositAdjustment).toBeNull();
    expect(quote.withheldAsNotAuthorised).toBe(false);
  });
});

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

  it('are those whose loan range takes the loan, both ends included', () => {
    const merchant = merchantOf(
      { minLoanPence: 120_000 },
      { maxLoanPence: 120_000 },
      { minLoanPence: 120_001 },
      { maxLoanPence: 119_999 },
    );
    expect(fitting(merchant)).toEqual(['P0', 'P1']);
  });

  it('are judged on the loan after the deposit was raised', () => {
    const merchant = merchantOf(
      { maxLoanPence: 108_000, depositMin: TEN_PERCENT },
      { minLoanPence: 108_001, depositMin: TEN_PERCENT },
    );
    expect(fitting(merchant)).toEqual(['P0']);
  });

  it('leave out a product whose largest deposit is below the one used', () => {
    const capped = { basisPoints: 10_000, fixedPence: 60_000 };
    const merchant = merchantOf({ depositMax: HALF }, {}, { depositMax: capped });
    const at = (depositPence: number) =>
      fitting(merchant, { loanPence: 120_000 - depositPence, depositPence });
    expect(at(60_000)).toEqual(['P0', 'P1', 'P2']);
    expect(at(60_001)).toEqual(['P1']);
  });

  it('come in the merchant’s order, then by name', () => {
    const merchant = merchantOf(
      { creditProduct: 'b', displayOrder: 2 },
      { creditProduct: 'a', displayOrder: 2 },
      { creditProduct: 'c', displayOrder: 1 },
    );
    expect(fitting(merchant)).toEqual(['c', 'a', 'b']);
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

it('shows nothing when the merchant has no product of the day', () => {
  const merchant = merchantOf({ validTo: '2026-11-20', depositMin: TEN_PERCENT });
  const nothing = { display: false, summaryHtml: '', depositPence: 0, fitted: [], shown: [] };
  const neither = { withheldAsNotAuthorised: false, depositAdjustment: null };
  expect(priceQuote(buildRequest({ merchant }))).toEqual({ ...nothing, ...neither });
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
  it('is raised to the merchant’s floor, which lowers the loan and leaves the price', () => {
    const merchant = { ...merchantOf({}, { minLoanPence: 110_000 }), depositFloor: TEN_PERCENT };
    const quote = priceQuote(buildRequest({ merchant }));
    expect(quote.depositAdjustment).toEqual({
      requestedDepositPence: 0,
      correctedDepositPence: 12_000,
      reason: 'A minimum deposit of 10% of the purchase price is required.',
      affectedProducts: quote.shown,
    });
    const raised = { purchasePricePence: 120_000, depositPence: 12_000, loanPence: 108_000 };
    expect(quote.shown).toMatchObject([raised]);
    expect(linkedAmounts(quote.summaryHtml)).toEqual(['1080.00', '120.00']);
  });

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
