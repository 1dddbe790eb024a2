import * as fc from 'fast-check';
import type { Merchant, Product } from '../../domain/product';
import type { QuoteRequest } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { TERMS } from '../../testbed/values';

/** Checks a property for so many values of arbitraries. */
export const forAll = <Ts extends [unknown, ...unknown[]]>(
  numRuns: number,
  ...property: [
    ...arbitraries: { [K in keyof Ts]: fc.Arbitrary<Ts[K]> },
    predicate: (...values: Ts) => boolean | void,
  ]
) => fc.assert(fc.property<Ts>(...property), { numRuns });

/** A 12-month 9.9 % product for every loan, changed as a test needs. */
export function buildProduct(changes: Partial<Product> = {}): Product {
  return {
    ...TERMS,
    productId: 'prd_1',
    version: 1,
    displayOrder: 1,
    validFrom: null,
    validTo: null,
    lenderName: 'Lender',
    creditProduct: 'Credit',
    minLoanPence: 1_000,
    maxLoanPence: 200_000_000,
    ...changes,
  };
}

export const INTEREST_FREE: Partial<Product> = { aprBasisPoints: 0, finalPayment: 'remainder' };

export function buildMerchant(changes: Partial<Merchant> = {}): Merchant {
  return {
    merchantId: 'M123456',
    tradingName: 'Merchant',
    fcaAuthorised: true,
    showProducts: true,
    summaryStyle: null,
    depositFloor: null,
    products: [buildProduct()],
    ...changes,
  };
}

/** A merchant with products P0, P1, … in this order. */
export function merchantOf(...products: Partial<Product>[]): Merchant {
  return buildMerchant({
    products: products.map((changes, index) =>
      buildProduct({ displayOrder: index, creditProduct: `P${index}`, ...changes }),
    ),
  });
}

/** A request for 1,200.00 without deposit on 21 November 2026. */
export function buildRequest(changes: Partial<QuoteRequest> = {}): QuoteRequest {
  return {
    merchant: buildMerchant(),
    loanPence: 120_000,
    depositPence: 0,
    merchantFinanceUrl: 'https://shop.example/finance',
    merchantReference: null,
    quoteId: 'qte_01',
    today: '2026-11-21',
    ...changes,
  };
}

export function names(priced: readonly { product: Product }[]): string[] {
  return priced.map(({ product }) => product.creditProduct);
}

/** `loan_amount` and `customer_deposit` of the link in a summary. */
export function linkedAmounts(html: string): (string | null)[] {
  const link = new URL(visibleText(html.match(/href="([^"]*)"/)?.[1] ?? ''));
  return [link.searchParams.get('loan_amount'), link.searchParams.get('customer_deposit')];
}

/** Loans from 10.00 to 2,000,000.00, small ones as often as large ones. */
export const anyLoan = fc.oneof(
  fc.integer({ min: 1_000, max: 20_000 }),
  fc.integer({ min: 1_000, max: 2_500_000 }),
  fc.integer({ min: 1_000, max: 200_000_000 }),
);

export const anyRounding = fc.constantFrom('half_up', 'floor', 'ceil');

/** Minimum rules of up to 40 % of the price and 50.00; none as often as one. */
export const anyDepositMin = fc.option(
  fc.record({
    basisPoints: fc.integer({ min: 0, max: 4_000 }),
    fixedPence: fc.integer({ min: 0, max: 5_000 }),
  }),
  { freq: 2 },
);

/** Maximum rules from 20 % of the price, some with a fixed cap; none as often as one. */
const anyDepositMax = fc.option(
  fc.record({
    basisPoints: fc.integer({ min: 2_000, max: 10_000 }),
    fixedPence: fc.oneof(fc.constant(0), fc.integer({ min: 10_000, max: 10_000_000 })),
  }),
  { freq: 2 },
);

/** Products of every kind in the market, most of which a product import accepts. */
export const anyProduct: fc.Arbitrary<Product> = fc
  .record({
    /** Tenths of a percent. */
    apr: fc.option(fc.integer({ min: 1, max: 999 }), { freq: 3 }),
    numberOfRepayments: fc.integer({ min: 1, max: 120 }),
    instalmentRounding: anyRounding,
    clearsBalance: fc.boolean(),
    deferralMonths: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 24 })),
    extraDays: fc.option(fc.integer({ min: -20, max: 20 })),
    minLoanPence: fc.oneof(fc.constant(1_000), fc.integer({ min: 1_000, max: 100_000 })),
    loanRange: fc.oneof(fc.constant(199_900_000), fc.integer({ min: 0, max: 199_900_000 })),
    depositMin: anyDepositMin,
    depositMax: anyDepositMax,
    firstPaymentType: fc.constantFrom('monthly_repayment', 'deposit', 'none'),
    annualRateShown: fc.constantFrom('flat', 'nominal', 'effective'),
    displayOrder: fc.integer({ min: 0, max: 3 }),
    creditProduct: fc.string({ minLength: 1, maxLength: 30 }),
  })
  .map(({ apr, clearsBalance, extraDays, loanRange, ...fields }) => {
    const expectedDays = Math.round((Math.max(1, fields.deferralMonths) * 365) / 12);
    return buildProduct({
      ...fields,
      aprBasisPoints: (apr ?? 0) * 10,
      finalPayment: apr === null ? 'remainder' : clearsBalance ? 'clear_balance' : 'equal',
      firstIntervalDays: extraDays === null ? null : expectedDays + extraDays,
      maxLoanPence: fields.minLoanPence + loanRange,
    });
  });
