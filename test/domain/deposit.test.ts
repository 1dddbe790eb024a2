import * as fc from 'fast-check';
import {
  depositReason,
  maximumDeposit,
  merchantDepositRule,
  minimumDeposit,
  sharedDepositRule,
} from '../../domain/quote';
import { buildProduct } from './builders';

const TEN_PERCENT = { basisPoints: 1_000, fixedPence: 0 };

describe('the minimum', () => {
  it.each([
    ['is nothing without a rule', 100_000, null, 0],
    ['is the share of the price', 100_000, TEN_PERCENT, 10_000],
    ['rounds the share up', 99_991, TEN_PERCENT, 10_000],
    ['is the fixed sum when that is more', 30_000, { basisPoints: 1_000, fixedPence: 5_000 }, 5_000],
    ['is the share when that is more', 100_000, { basisPoints: 1_000, fixedPence: 5_000 }, 10_000],
    ['is never above the price', 3_000, { basisPoints: 0, fixedPence: 5_000 }, 3_000],
    ['may be the whole price', 12_345, { basisPoints: 10_000, fixedPence: 0 }, 12_345],
  ])('%s', (_name, price, rule, pence) => {
    expect(minimumDeposit(price, rule)).toBe(pence);
  });
});

describe('the maximum', () => {
  it.each([
    ['is the price without a rule', 100_000, null, 100_000],
    ['rounds the share down', 99_999, { basisPoints: 5_000, fixedPence: 0 }, 49_999],
    ['is the fixed sum when that is less', 100_000, { basisPoints: 5_000, fixedPence: 20_000 }, 20_000],
    ['is the share when that is less', 30_000, { basisPoints: 5_000, fixedPence: 20_000 }, 15_000],
    ['is nothing for a share of 0', 30_000, { basisPoints: 0, fixedPence: 0 }, 0],
  ])('%s', (_name, price, rule, pence) => {
    expect(maximumDeposit(price, rule)).toBe(pence);
  });
});

it('is exact for every price there is', () => {
  const price = fc.integer({ min: 0, max: 200_000_000_000_000 });
  fc.assert(
    fc.property(price, fc.integer({ min: 0, max: 10_000 }), (pricePence, basisPoints) => {
      const rule = { basisPoints, fixedPence: 0 };
      const exact = BigInt(pricePence) * BigInt(basisPoints);
      expect(BigInt(minimumDeposit(pricePence, rule))).toBe((exact + 9_999n) / 10_000n);
      expect(BigInt(maximumDeposit(pricePence, rule))).toBe(exact / 10_000n);
    }),
    { numRuns: 1_000 },
  );
});

describe('the merchant-wide rule', () => {
  const withRule = buildProduct({ depositMin: { ...TEN_PERCENT } });
  const other = buildProduct({ depositMin: { basisPoints: 2_000, fixedPence: 0 } });

  it('is the floor of the merchant when it has one, whatever its products say', () => {
    const floor = { basisPoints: 0, fixedPence: 1 };
    expect(merchantDepositRule({ depositFloor: floor }, [withRule, other])).toBe(floor);
  });

  it('is otherwise the rule that all products share', () => {
    const twin = buildProduct({ depositMin: { ...TEN_PERCENT } });
    expect(merchantDepositRule({ depositFloor: null }, [withRule, twin])).toEqual(TEN_PERCENT);
  });

  it('is none when rules differ, one product has none, or there is no product', () => {
    expect(sharedDepositRule([withRule, other])).toBeNull();
    expect(sharedDepositRule([withRule, buildProduct()])).toBeNull();
    expect(sharedDepositRule([buildProduct(), withRule])).toBeNull();
    expect(
      sharedDepositRule([withRule, buildProduct({ depositMin: { basisPoints: 1_000, fixedPence: 1 } })]),
    ).toBeNull();
    expect(sharedDepositRule([])).toBeNull();
  });
});

it.each([
  [100_000, TEN_PERCENT, 'A minimum deposit of 10% of the purchase price is required.'],
  [
    100_000,
    { basisPoints: 1_250, fixedPence: 0 },
    'A minimum deposit of 12.5% of the purchase price is required.',
  ],
  [100_000, { basisPoints: 0, fixedPence: 5_000 }, 'A minimum deposit of £50.00 is required.'],
  [30_000, { basisPoints: 1_000, fixedPence: 5_000 }, 'A minimum deposit of £50.00 is required.'],
  [5_000, { basisPoints: 1_000, fixedPence: 5_000 }, 'A minimum deposit of £50.00 is required.'],
  [4_999, { basisPoints: 1_000, fixedPence: 5_000 }, 'A deposit of the whole purchase price is required.'],
  [
    80_000,
    { basisPoints: 1_000, fixedPence: 5_000 },
    'A minimum deposit of 10% of the purchase price is required.',
  ],
])('the reason at a price of %d pence names the part of %j that decides', (price, rule, reason) => {
  expect(depositReason(price, rule)).toBe(reason);
});
