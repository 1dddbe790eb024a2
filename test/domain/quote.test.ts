import type { Product } from '../../domain/product';
import { priceQuote } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { buildMerchant, buildProduct, buildRequest, linkedAmounts, merchantOf, names } from './builders';

const TEN_PERCENT = { basisPoints: 1_000, fixedPence: 0 };

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

  it.each<[Partial<Product>, object]>([
    [{ firstPaymentType: 'monthly_repayment' }, { firstPaymentAmountPence: 9_469 }],
    [{ firstPaymentType: 'deposit' }, { firstPaymentAmountPence: 12_000 }],
    [{ firstPaymentType: 'none' }, { firstPaymentAmountPence: 0 }],
    [{ deferralMonths: 6 }, { initialPaymentDue: { value: 6, unit: 'months' } }],
    [{ deferralMonths: 6, firstIntervalDays: 184 }, { initialPaymentDue: { value: 184, unit: 'days' } }],
    [{ annualRateShown: 'nominal' }, { annualRateBasisPoints: 948 }],
    [{ annualRateShown: 'effective' }, { annualRateBasisPoints: 990 }],
  ])('with %j says %j', (changes, expected) => {
    const request = { loanPence: 108_000, depositPence: 12_000, merchant: merchantOf(changes) };
    expect(priceQuote(buildRequest(request)).shown[0]).toMatchObject(expected);
  });

  it('counts the deferral in the years of the flat rate', () => {
    const merchant = merchantOf({ numberOfRepayments: 48, deferralMonths: 12, aprBasisPoints: 2_490 });
    const [item] = priceQuote(buildRequest({ merchant, loanPence: 90_000 })).shown;
    // 781.44 / 900.00 / (59 / 12).
    expect(item).toMatchObject({ costOfCreditPence: 78_144, annualRateBasisPoints: 1_766 });
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
    expect(names(priceQuote(buildRequest({ merchant })).shown)).toEqual(['from today', 'to today']);
  });

  it('are those whose loan range takes the loan, both ends included', () => {
    const merchant = merchantOf(
      { minLoanPence: 120_000 },
      { maxLoanPence: 120_000 },
      { minLoanPence: 120_001 },
      { maxLoanPence: 119_999 },
    );
    expect(names(priceQuote(buildRequest({ merchant })).shown)).toEqual(['P0', 'P1']);
  });

  it('are judged on the loan after the deposit was raised', () => {
    const merchant = merchantOf(
      { maxLoanPence: 108_000, depositMin: TEN_PERCENT },
      { minLoanPence: 108_001, depositMin: TEN_PERCENT },
    );
    expect(names(priceQuote(buildRequest({ merchant })).shown)).toEqual(['P0']);
  });

  it('leave out a product whose largest deposit is below the one used', () => {
    const [half, capped] = [
      { basisPoints: 5_000, fixedPence: 0 },
      { basisPoints: 10_000, fixedPence: 60_000 },
    ];
    const merchant = merchantOf({ depositMax: half }, {}, { depositMax: capped });
    const at = (depositPence: number): string[] =>
      names(priceQuote(buildRequest({ merchant, loanPence: 120_000 - depositPence, depositPence })).shown);
    expect(at(60_000)).toEqual(['P0', 'P1', 'P2']);
    expect(at(60_001)).toEqual(['P1']);
  });

  it('come in the merchant’s order, then by name', () => {
    const merchant = merchantOf(
      { creditProduct: 'b', displayOrder: 2 },
      { creditProduct: 'a', displayOrder: 2 },
      { creditProduct: 'c', displayOrder: 1 },
    );
    expect(names(priceQuote(buildRequest({ merchant })).shown)).toEqual(['c', 'a', 'b']);
  });
});

describe('a list that is withheld', () => {
  it('for one that is not authorised and has nothing that fits keeps the notice', () => {
    const merchant = { ...merchantOf({ maxLoanPence: 1_000 }), fcaAuthorised: false };
    const nothing = { display: false, summaryHtml: '', shown: [], withheldAsNotAuthorised: true };
    expect(priceQuote(buildRequest({ merchant }))).toMatchObject(nothing);
  });

  it('for one that is not authorised and has no products at all keeps the headline, for every loan that exists', () => {
    const half = { basisPoints: 5_000, fixedPence: 0 };
    const merchant = buildMerchant({ fcaAuthorised: false, products: [] });
    const quote = priceQuote(buildRequest({ merchant }));
    expect(quote).toMatchObject({ display: true, shown: [], fitted: [], withheldAsNotAuthorised: true });
    expect(visibleText(quote.summaryHtml)).toBe('Spread the cost with finance. Learn more');
    expect(linkedAmounts(quote.summaryHtml)).toEqual(['1200.00', '0.00']);
    expect(quote.depositAdjustment).toBeNull();
    const at = (loanPence: number) =>
      priceQuote(buildRequest({ merchant: { ...merchant, depositFloor: half }, loanPence }));
    expect(linkedAmounts(at(2_000).summaryHtml)).toEqual(['10.00', '10.00']);
    // The floor leaves a loan below 10.00, which nobody offers.
    expect(at(1_999)).toMatchObject({ display: false, summaryHtml: '', withheldAsNotAuthorised: true });
  });
});

it('shows nothing when the merchant has no product of the day', () => {
  const merchant = merchantOf({ validTo: '2026-11-20', depositMin: TEN_PERCENT });
  expect(priceQuote(buildRequest({ merchant }))).toEqual({
    display: false,
    summaryHtml: '',
    fitted: [],
    shown: [],
    withheldAsNotAuthorised: false,
    depositAdjustment: null,
  });
});
