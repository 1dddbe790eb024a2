import * as fc from 'fast-check';
import { flatAnnualBasisPoints, paymentYears } from '../../domain/repayment-plan';
import { anyProduct, buildProduct } from './builders';

describe('the flat rate', () => {
  // Worked by hand: cost / loan / years from drawdown to the last payment.
  it.each([
    ['n months without a deferral', { numberOfRepayments: 12 }, 521], // 62.52 / 1,200 / 1
    ['one payment after a month', { numberOfRepayments: 1 }, 6_252], // 62.52 / 1,200 / (1 / 12)
    ['the same when deferred by one month', { numberOfRepayments: 12, deferralMonths: 1 }, 521],
    ['d − 1 + n months when deferred by d', { numberOfRepayments: 12, deferralMonths: 6 }, 368], // … / (17 / 12)
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
    expect(
      flatAnnualBasisPoints(buildProduct({ numberOfRepayments: 120 }), 200_000_000, 50_000_000_000),
    ).toBe(250_000);
  });

  it('counts to the last payment that the APR counts', () => {
    fc.assert(
      fc.property(anyProduct, fc.integer({ min: 0, max: 500_000 }), (product, cost) => {
        const years = paymentYears(product).at(-1) ?? 0;
        const exact = (cost / 120_000 / years) * 10_000;
        expect(Math.abs(flatAnnualBasisPoints(product, 120_000, cost) - exact)).toBeLessThan(0.500001);
      }),
    );
  });
});
