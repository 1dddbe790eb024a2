import * as fc from 'fast-check';
import type { DepositRule, Merchant, Product } from '../../domain/product';
import { parsePence } from '../../domain/money';
import { priceQuote, type PricedProduct } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { anyLoan, anyProduct, buildMerchant, buildRequest, forAll, linkedAmounts } from './builders';
import { recompute, type Item } from './recomputation';

const anyShare = fc.oneof(fc.constantFrom(1_000, 3_333, 5_000), fc.integer({ min: 0, max: 4_000 }));
const rule = (basisPoints: number, fixedPence = 0): DepositRule => ({ basisPoints, fixedPence });

/** Minimum and maximum: none, one share as both, or two rules that may contradict each other at a price. */
const anyRules = fc.oneof(
  fc.constant({ depositMin: null, depositMax: null }),
  anyShare.map((share) => ({ depositMin: rule(share), depositMax: rule(share) })),
  anyShare.map((share) => ({ depositMin: null, depositMax: rule(share) })),
  fc
    .tuple(anyShare, fc.nat(6_000), fc.constantFrom(0, 0, 5_000), fc.constantFrom(0, 0, 100_000))
    .map(([share, more, least, most]) => ({
      depositMin: rule(share, least),
      depositMax: rule(share + more, most),
    })),
);

/** A rate beside the APR, near enough: what an import would refuse is priced the same. */
const anyBasis = fc.constantFrom('apr_effective', 'monthly_rate', 'nominal_annual');

const anyOwnProduct = fc
  .record({
    product: anyProduct,
    rules: anyRules,
    basis: anyBasis,
    rateType: fc.constantFrom('fixed', 'fixed', 'variable'),
    once: fc.constantFrom(false, false, false, true),
    validTo: fc.constantFrom(null, null, null, null, '2026-11-20'),
  })
  .map(({ product, rules, basis, rateType, once, validTo }): Product => {
    const months = Math.round(product.aprBasisPoints * 8);
    const rateBasis = product.aprBasisPoints === 0 ? 'apr_effective' : basis;
    const ratePpm = { apr_effective: null, monthly_rate: months, nominal_annual: months * 12 }[rateBasis];
    const repayments = once ? { numberOfRepayments: 1 } : {};
    return { ...product, ...rules, rateType, rateBasis, ratePpm, validTo, ...repayments };
  });

const TURNED = { fixed: { rateType: 'variable' }, variable: { rateType: 'fixed' } } as const;

const anyMerchant = fc
  .record({
    products: fc.uniqueArray(anyOwnProduct, {
      minLength: 1,
      maxLength: 4,
      selector: (one) => one.creditProduct,
    }),
    /** A second product of the same price with another kind of rate: the first in order is named. */
    twin: fc.boolean(),
    shared: fc.option(anyRules, { freq: 3 }),
    depositFloor: fc.option(
      anyShare.map((share) => rule(share)),
      { freq: 2 },
    ),
    showProducts: fc.constantFrom(true, true, false),
    fcaAuthorised: fc.constantFrom(true, true, true, false),
    summaryStyle: fc.constantFrom(null, null, 'offer', 'headline'),
  })
  .map(({ products, twin, shared, ...fields }): Merchant => {
    const twins = twin
      ? products.map((one): Product => ({
          ...one,
          creditProduct: `${one.creditProduct}+`,
          ...TURNED[one.rateType],
        }))
      : [];
    const all = [...twins, ...products].map((one) => ({ ...one, ...shared }));
    return buildMerchant({ ...fields, products: all });
  });

const figures = (one: PricedProduct): Item => ({
  product: one.product,
  deposit: one.depositPence,
  loan: one.loanPence,
  firstPayment: one.firstPaymentAmountPence,
  monthly: one.monthlyRepaymentPence,
  last: one.finalRepaymentPence,
  total: one.totalPayablePence,
  cost: one.costOfCreditPence,
  annual: one.annualRateBasisPoints,
  due: dueOf(one),
});

const dueOf = ({ initialPaymentDue: { value, unit } }: PricedProduct) =>
  `${value} ${value === 1 ? unit.slice(0, -1) : unit}`;

const pence = (text: string | null) => {
  const parsed = parsePence(text ?? '');
  return parsed.ok ? parsed.pence : null;
};

test('500 random products and more have the deposits, figures, list and summary of an independent program', () => {
  const seen = { products: 0, fitted: 0, priced: 0, corrected: 0, nothing: 0 };
  forAll(250, anyMerchant, anyLoan, fc.oneof(fc.constant(0), fc.nat(60)), (merchant, loan, percent) => {
    const deposit = Math.floor((loan * percent) / 100);
    const request = buildRequest({ merchant, loanPence: loan, depositPence: deposit });
    const quote = priceQuote(request);
    const expected = recompute(merchant, loan, deposit, request.today);
    // An import refuses products that cost less than nothing, and no annual rate is defined for them.
    fc.pre(expected.fitted.every(({ cost }) => cost >= 0));
    expect(quote.fitted.map(figures)).toEqual(expected.fitted);
    expect(quote.shown.map(figures)).toEqual(expected.shown);
    expect(quote.display).toBe(expected.summary !== null);
    expect(quote.depositAdjustment?.correctedDepositPence ?? null).toBe(expected.corrected);
    expect(quote.depositAdjustment?.affectedProducts ?? []).toEqual(
      expected.corrected === null ? [] : quote.shown,
    );
    expect(quote.summaryHtml === '' ? null : visibleText(quote.summaryHtml)).toBe(expected.summary);
    if (expected.summary !== null) expect(linkedAmounts(quote.summaryHtml).map(pence)).toEqual(expected.link);
    seen.products += merchant.products.length;
    seen.fitted += expected.fitted.length;
    if (expected.summary?.includes('£') === true) seen.priced += 1;
    if (expected.corrected !== null) seen.corrected += 1;
    if (expected.summary === null) seen.nothing += 1;
  });
  expect(seen.products).toBeGreaterThan(500);
  expect(Math.min(seen.fitted, seen.priced, seen.corrected, seen.nothing)).toBeGreaterThan(30);
});
