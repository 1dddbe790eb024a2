import * as fc from 'fast-check';
import { impliedApr, roundPercent } from '../../domain/apr';
import type { CashFlow } from '../../domain/apr';
import { forAll } from './builders';

type Flows = readonly CashFlow[];
it.each<[string, Flows, Flows, number | null]>([
  ['none when less is paid than was lent', [[0, 1_000]], [[1, 999]], null],
  ['none when nothing is paid', [[0, 1_000]], [], null],
  ['none when nothing was lent', [], [[1, 100]], null],
  ['none for a payment at the moment of drawdown that exceeds it', [[0, 100]], [[0, 101]], null],
  [
    '0 for a loan repaid to the penny',
    [[0, 200_000_000]],
    [
      [1, 100_000_000],
      [2, 100_000_000],
    ],
    0,
  ],
  ['a penny of interest on the largest loan', [[0, 200_000_000]], [[1, 200_000_001]], 5e-7],
  // 100 − 230·v + 132·v² is zero at 10 % and at 20 %.
  [
    'the lowest of several rates',
    [
      [0, 100],
      [2, 132],
    ],
    [[1, 230]],
    10,
  ],
])('finds %s', (_what, drawdowns, payments, expected) => {
  const apr = impliedApr(drawdowns, payments);
  if (expected === null) expect(apr).toBeNull();
  else expect(apr).toBeCloseTo(expected, 9);
});

it('finds the rate a single payment was made from, up to tens of thousands of percent', () => {
  forAll(
    500,
    fc.double({ min: 0.1, max: 50_000, noNaN: true }),
    fc.double({ min: 0.05, max: 10, noNaN: true }),
    (percent, years) => {
      const payment = 1_000 * (1 + percent / 100) ** years;
      const apr = impliedApr([[0, 1_000]], [[years, payment]]) ?? NaN;
      expect(Math.abs(apr / percent - 1)).toBeLessThan(1e-7);
    },
  );
});

it.each([
  [1.005, 2, 1.01],
  [9.949_999_999_999_99, 1, 10],
  [9.949, 1, 9.9],
  [0.05, 1, 0.1],
  [1e-9, 1, 0],
  [1_355.25, 1, 1_355.3],
])('rounds %d half-up to %d decimals: %d', (percent, decimals, rounded) => {
  expect(roundPercent(percent, decimals)).toBe(rounded);
});
