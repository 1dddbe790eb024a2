import * as fc from 'fast-check';
import {
  DELIVERY_LADDER_MS,
  MAX_RETRY_AFTER_MS,
  nextWait,
  TEST_LADDER_MS,
  parseRetryAfter,
} from '../../domain/delivery-outcome';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const first = () => 0;
const last = () => 1 - Number.EPSILON;

const wait = (attemptsMade: number, retryAfterMs: number | null = null, random = first) =>
  nextWait({ ladderMs: DELIVERY_LADDER_MS, attemptsMade, retryAfterMs, random });

test('the ladder has 11 attempts over 75.6 hours, the test ladder 3 over 35 seconds', () => {
  const sum = (ladder: readonly number[]) => ladder.reduce((total, step) => total + step, 0);
  expect(DELIVERY_LADDER_MS).toHaveLength(11);
  expect(sum(DELIVERY_LADDER_MS) / HOUR).toBeCloseTo(75.6, 1);
  expect(TEST_LADDER_MS).toEqual([0, 5 * SECOND, 30 * SECOND]);
});

test('the first attempt is made at once', () => {
  expect(wait(0, null, last)).toEqual({ waitMs: 0, because: 'ladder' });
});

test('there is no twelfth attempt', () => {
  expect(wait(10)?.waitMs).toBe(24 * HOUR);
  expect(wait(11)).toBeNull();
  expect(wait(11, 5 * SECOND)).toBeNull();
});

it.each([
  [1, 5 * SECOND, 1 * SECOND],
  [2, 1 * MINUTE, 6 * SECOND],
  [3, 5 * MINUTE, 30 * SECOND],
  [4, 30 * MINUTE, 3 * MINUTE],
  [5, 2 * HOUR, 12 * MINUTE],
  [6, 5 * HOUR, 15 * MINUTE],
  [10, 24 * HOUR, 15 * MINUTE],
])('after %d attempts the wait is %d ms and at most %d ms of jitter', (made, step, jitter) => {
  expect(wait(made)?.waitMs).toBe(step);
  expect(wait(made, null, last)?.waitMs).toBe(step + jitter - 1);
});

test('a Retry-After later than the ladder counts', () => {
  expect(wait(1, 120 * SECOND)).toEqual({ waitMs: 120 * SECOND, because: 'retry_after' });
});

test('a Retry-After earlier than the ladder, or the same, changes nothing', () => {
  expect(wait(3, 2 * MINUTE)).toEqual({ waitMs: 5 * MINUTE, because: 'ladder' });
  expect(wait(3, 5 * MINUTE)).toEqual({ waitMs: 5 * MINUTE, because: 'ladder' });
  expect(wait(3, 0)).toEqual({ waitMs: 5 * MINUTE, because: 'ladder' });
});

test('a Retry-After counts for at most 10 hours, and never shortens a longer step', () => {
  expect(wait(1, 365 * 24 * HOUR)).toEqual({ waitMs: 10 * HOUR, because: 'retry_after' });
  expect(wait(10, 365 * 24 * HOUR)).toEqual({ waitMs: 24 * HOUR, because: 'ladder' });
});

test('no wait is shorter than its step, none is longer than step, jitter and Retry-After allow', () => {
  fc.assert(
    fc.property(
      fc.nat(DELIVERY_LADDER_MS.length - 1),
      fc.option(fc.double({ min: 0, max: 1e15, noNaN: true })),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (made, retryAfterMs, random) => {
        const result = wait(made, retryAfterMs, () => random);
        const step = DELIVERY_LADDER_MS[made] ?? NaN;
        const asked = Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
        expect(Number.isSafeInteger(result?.waitMs)).toBe(true);
        expect(result?.waitMs).toBeGreaterThanOrEqual(Math.max(step, asked));
        expect(result?.waitMs).toBeLessThanOrEqual(Math.max(step + 15 * MINUTE, Math.ceil(asked)));
      },
    ),
  );
});

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0);
const LONGEST = 20 * 86_400_000;

it.each([
  ['0', 0],
  ['120', 120_000],
  [' 120\t', 120_000],
  ['007', 7_000],
  ['99999999999', LONGEST],
  ['9'.repeat(400), LONGEST],
])('reads %s as seconds', (text, ms) => {
  expect(parseRetryAfter(text, NOW)).toBe(ms);
});

it.each([
  ['Sat, 21 Nov 2026 12:02:00 GMT', 120_000],
  ['Saturday, 21-Nov-26 12:02:00 GMT', 120_000],
  ['Sat Nov 21 12:02:00 2026', 120_000],
  ['Tue Dec  1 12:00:00 2026', 10 * 86_400_000],
  ['Sat, 21 Nov 2026 12:00:60 GMT', 60_000],
  ['Thu, 29 Feb 2024 00:00:00 GMT', 0],
  ['Sat, 21 Nov 2026 11:59:59 GMT', 0],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
  ['Fri, 31 Dec 9999 23:59:59 GMT', LONGEST],
])('reads %s as a date', (text, ms) => {
  expect(parseRetryAfter(text, NOW)).toBe(ms);
});

test('a year of two digits up to 50 years ahead lies in the future, a later one in the past', () => {
  expect(parseRetryAfter('Saturday, 21-Nov-76 12:00:00 GMT', NOW)).toBe(LONGEST);
  expect(parseRetryAfter('Saturday, 21-Nov-77 12:00:00 GMT', NOW)).toBe(0);
});

it.each([
  '',
  '-1',
  '1e3',
  '१२०',
  '120, 60',
  'soon',
  '2026-11-21T12:02:00Z',
  'Sat, 21 Nov 2026 12:02:00',
  'Sat, 21 Nov 2026 12:02:00 +0100',
  'Sat, 31 Nov 2026 12:00:00 GMT',
  'Sat, 00 Nov 2026 12:00:00 GMT',
  'Sat, 21 Nov 2026 24:00:00 GMT',
  'Sat, 21 Nov 2026 12:00:61 GMT',
  'Xyz, 21 Nov 2026 12:02:00 GMT',
  'Sat, 21 Foo 2026 12:02:00 GMT',
])('ignores %j', (text) => {
  expect(parseRetryAfter(text, NOW)).toBeNull();
});

test('every moment that Date writes as an HTTP-date is read back', () => {
  fc.assert(
    fc.property(fc.nat(LONGEST / 1_000), (seconds) => {
      const text = new Date(NOW + seconds * 1_000).toUTCString();
      expect(parseRetryAfter(text, NOW)).toBe(seconds * 1_000);
    }),
  );
});

test('any text gives null or a whole number of milliseconds up to twenty days', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const ms = parseRetryAfter(text, NOW);
      expect(ms === null || (Number.isInteger(ms) && ms >= 0 && ms <= LONGEST)).toBe(true);
    }),
  );
});
