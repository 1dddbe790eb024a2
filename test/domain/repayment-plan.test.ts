import * as fc from 'fast-check';
import { checkProduct, aprTolerance, impliedProductApr } from '../../domain/product-check';
import { planRepayments, flatAnnualBasisPoints } from '../../domain/repayment-plan';
import { anyProduct, buildProduct, forAll } from './builders';

describe('a plan', () => {
  it('implies its APR within the tolerance wherever the product check accepts the product', () => {
    let accepted = 0;
    forAll(100, anyProduct, fc.double({ min: 0, max: 1, noNaN: true }), (fields, place) => {
      const product = { ...fields, creditProduct: 'Credit', depositMin: null, depositMax: null };
      fc.pre(checkProduct(product).length === 0);
      accepted += 1;
      const loanPence = Math.round(
        product.minLoanPence + place * (product.maxLoanPence - product.minLoanPence),
      );
      const plan = planRepayments(product, loanPence);
      const { monthlyRepaymentPence, finalRepaymentPence } = plan;
      const apr = impliedProductApr(product, loanPence, monthlyRepaymentPence, finalRepaymentPence);
      const off = Math.abs((apr ?? NaN) - product.aprBasisPoints / 100);
      expect(off).toBeLessThanOrEqual(aprTolerance(product, loanPence));
      expect(plan.costOfCreditPence > 0).toBe(product.aprBasisPoints > 0);
    });
    expect(accepted).toBeGreaterThanOrEqual(100);
  });
});

describe('the flat rate', () => {
  // Worked by hand: cost / loan / years from drawdown to the last payment.
  it.each([
    ['n months without a deferral', {}, 521], // 62.52 / 1,200 / 1
    ['one payment after a month', { numberOfRepayments: 1 }, 6_252], // 62.52 / 1,200 / (1 / 12)
    ['the same when deferred by one month', { deferralMonths: 1 }, 521],
    ['d − 1 + n months when deferred by d', { deferralMonths: 6 }, 368], // … / (17 / 12)
    ['one payment at month d', { numberOfRepayments: 1, deferralMonths: 12 }, 521], // … / (12 / 12)
    ['days of a year of 365', { numberOfRepayments: 1, firstIntervalDays: 73 }, 2_605], // … / (73 / 365)
    ['days, then n − 1 months', { numberOfRepayments: 13, firstIntervalDays: 73 }, 434], // … / 1.2
    [
      'the days rather than the months deferred',
      { numberOfRepayments: 7, deferralMonths: 6, firstIntervalDays: 182 },
      522, // … / (182 / 365 + 0.5)
    ],
  ])('counts %s', (_name, changes, expected) => {
    expect(flatAnnualBasisPoints(buildProduct(changes), 120_000, 6_252)).toBe(expected);
  });

  it('is half-up at an exact half, and exact at the largest cost there is', () => {
    // 1.05 / 1,000.00 in one year is 10.5 basis points.
    expect(flatAnnualBasisPoints(buildProduct(), 100_000, 105)).toBe(11);
    expect(flatAnnualBasisPoints(buildProduct(), 100_000, 104)).toBe(10);
    // 50,000,000,000 / 200,000,000 / 10 years.
    const longest = buildProduct({ numberOfRepayments: 120 });
    expect(flatAnnualBasisPoints(longest, 200_000_000, 50_000_000_000)).toBe(250_000);
  });
});
