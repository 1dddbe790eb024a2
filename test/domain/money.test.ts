import * as fc from 'fast-check';
import {
  amountText,
  divideCeil,
  divideFloor,
  divideHalfUp,
  formatPence,
  formatPounds,
  parsePence,
  roundPence,
} from '../../domain/money';
import { forAll } from './builders';

describe('parsePence', () => {
  it.each([
    ['0', 0],
    ['1', 100],
    ['1.50', 150],
  ])('reads %s as %d pence', (text, pence) => {
    expect(parsePence(text)).toEqual({ ok: true, pence });
  });

  it.each([
    ...['', ' 1', '01', '1.', '-1', '+1', '1,000.00', '£1', '1e3', '١', '1\n'].map((no) => [no, 'format']),
    ...['1.005', '0.000', '1234567890123.001'].map((no) => [no, 'decimals']),
    ...['1000000000000', '1234567890123.45', '9'.repeat(400)].map((no) => [no, 'too_large']),
  ] as [string, string][])('refuses %j: %s', (text, reason) => {
    expect(parsePence(text)).toEqual({ ok: false, reason });
  });

  it('reads back every amount it writes', () => {
    forAll(1_000, fc.integer({ min: 0, max: 99_999_999_999_999 }), (pence) => {
      expect(parsePence(formatPence(pence))).toEqual({ ok: true, pence });
    });
  });
});

describe('amountText', () => {
  it.each([
    [1.5e22, '15000000000000000000000'],
    [-1.25e-9, '-0.00000000125'],
    [Number.NaN, ''],
    [Number.POSITIVE_INFINITY, ''],
    ['1.50', '1.50'],
    ['1e3', '1e3'],
  ])('gives %p as %p', (value, text) => {
    expect(amountText(value)).toBe(text);
  });

  it('gives every number without an exponent and without loss, minus zero as zero', () => {
    forAll(1_000, fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = amountText(value);
      expect(text).toMatch(/^-?\d+(\.\d+)?$/);
      expect(Number(text)).toBe(value + 0);
    });
  });
});

describe('formatting', () => {
  it.each([
    [0, '0.00', '£0.00'],
    [7, '0.07', '£0.07'],
    [123_450, '1234.50', '£1,234.50'],
    [100_000, '1000.00', '£1,000.00'],
    [99_999, '999.99', '£999.99'],
    [200_000_000, '2000000.00', '£2,000,000.00'],
    [-150, '-1.50', '-£1.50'],
  ])('writes %d pence as %s and %s', (pence, plain, people) => {
    expect(formatPence(pence)).toBe(plain);
    expect(formatPounds(pence)).toBe(people);
  });

  it('refuses what is not whole pence', () => {
    expect(() => formatPence(1.5)).toThrow(RangeError);
    expect(() => formatPounds(Number.NaN)).toThrow(RangeError);
  });
});

describe('divisions', () => {
  it('agree with exact arithmetic over all safe integers', () => {
    forAll(1_000, fc.maxSafeNat(), fc.maxSafeNat(), (numerator, less) => {
      const denominator = less + 1 > Number.MAX_SAFE_INTEGER ? less : less + 1;
      const [n, d] = [BigInt(numerator), BigInt(denominator)];
      expect(BigInt(divideFloor(numerator, denominator))).toBe(n / d);
      expect(BigInt(divideCeil(numerator, denominator))).toBe((n + d - 1n) / d);
      expect(BigInt(divideHalfUp(numerator, denominator))).toBe((2n * n + d) / (2n * d));
    });
  });

  it('refuse a zero divisor, negative and fractional numbers', () => {
    expect(() => divideHalfUp(1, 0)).toThrow(RangeError);
    expect(() => divideFloor(-1, 2)).toThrow(RangeError);
    expect(() => divideCeil(1.5, 2)).toThrow(RangeError);
  });
});

describe('roundPence', () => {
  it.each([
    [10_500.000_000_000_1, 'ceil', 10_500],
    [10_499.999_999_999_9, 'floor', 10_500],
    [2.499_999_999_999, 'half_up', 3],
    [2.5, 'half_up', 3],
    [2.499_999, 'half_up', 2],
    [2.000_001, 'ceil', 3],
    [2.999_999, 'floor', 2],
    [0, 'ceil', 0],
    [-1e-12, 'ceil', 0],
    [200_000_000.000_000_1, 'ceil', 200_000_000],
  ] as const)('rounds %d by %s to %d', (value, rounding, pence) => {
    expect(roundPence(value, rounding)).toBe(pence);
  });
});
