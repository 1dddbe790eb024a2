import {
  afterOutcome,
  describeOutcome,
  outcomeOfStatus,
  judgeFailing,
  DELIVERY_LADDER_MS,
  MAX_RETRY_AFTER_MS,
  nextWait,
  TEST_LADDER_MS,
  parseRetryAfter,
} from '../../domain/delivery-outcome';
import * as fc from 'fast-check';
import { forAll } from './builders';

it.each([200, 201, 202, 204, 250, 299])('%d is delivered', (status) => {
  const outcome = outcomeOfStatus(status, 83, 5_000);
  expect(outcome).toEqual({ kind: 'delivered', httpStatus: status, durationMs: 83 });
  expect(afterOutcome(outcome)).toBe('done');
  expect(describeOutcome(outcome)).toBe(`delivered: ${status} (83 ms)`);
});

it.each([
  ...[300, 304, 399].map((status) => [status, 'redirect', 'retry'] as const),
  ...[400, 429, 500, 599, 999].map((status) => [status, 'http_status', 'retry'] as const),
  [410, 'gone', 'stop'] as const,
])('%d is a failure, %s: %s', (httpStatus, failure, then) => {
  const outcome = outcomeOfStatus(httpStatus, 1_500, null);
  expect(outcome).toEqual({ kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: null });
  expect(afterOutcome(outcome)).toBe(then);
});

it.each([
  ['http_status', 500, 'answered 500 (1.5 s); asks to wait 120 s'],
  ['redirect', 302, 'answered 302, a redirect, which is not followed (1.5 s); asks to wait 120 s'],
] as const)('%s is described in one line', (failure, httpStatus, text) => {
  const outcome = { kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: 120_000 } as const;
  expect(describeOutcome(outcome)).toBe(text);
});

const WITHOUT_STATUS = ['connect', 'timeout', 'tls', 'dns', 'reset', 'blocked_address', 'protocol'] as const;
it.each(WITHOUT_STATUS)('%s without a status is tried again, and says so without one', (failure) => {
  const outcome = { kind: 'failed', failure, httpStatus: null, durationMs: 5, retryAfterMs: null } as const;
  expect(afterOutcome(outcome)).toBe('retry');
  expect(describeOutcome(outcome)).toMatch(/^[^\n]{5,80} \(5 ms\)$/);
  expect(describeOutcome(outcome)).not.toContain('null');
});

test.each([
  [0, 1, 0, null],
  [23.9, 400, 0, null],
  [24, 2, 0, { kind: 'warn', hours: 24 }],
  [30, 3, 24, null],
  [48, 3, 24, { kind: 'warn', hours: 48 }],
  // One that was quiet for long skips the warnings in between.
  [97, 3, 24, { kind: 'warn', hours: 96 }],
  [97, 3, 96, null],
  [119.9, 100, 96, null],
  [120, 19, 96, null],
  [120, 20, 96, { kind: 'disable' }],
  [400, 19, 0, { kind: 'warn', hours: 96 }],
  [400, 20, 0, { kind: 'disable' }],
])('after %d h and %d failures, warned at %d h: %j', (hours, failures, warnedHours, verdict) => {
  expect(judgeFailing({ hours, failures, warnedHours })).toEqual(verdict);
});

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
  for (const retryAfterMs of [null, 5 * SECOND]) expect(wait(11, retryAfterMs)).toBeNull();
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

test.each([
  ['later than the ladder counts', 1, 120 * SECOND, 120 * SECOND, 'retry_after'],
  ['earlier than the ladder changes nothing', 3, 2 * MINUTE, 5 * MINUTE, 'ladder'],
  ['of the same length changes nothing', 3, 5 * MINUTE, 5 * MINUTE, 'ladder'],
  ['counts for at most 10 hours', 1, 365 * 24 * HOUR, 10 * HOUR, 'retry_after'],
  ['never shortens a longer step', 10, 365 * 24 * HOUR, 24 * HOUR, 'ladder'],
])('a Retry-After %s', (_what, made, retryAfterMs, waitMs, because) => {
  expect(wait(made, retryAfterMs)).toEqual({ waitMs, because });
});

test('no wait is shorter than its step, none is longer than step, jitter and Retry-After allow', () => {
  forAll(
    100,
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

const NO_NUMBERS = ['', '-1', '1e3', '१२०', '120, 60', 'soon', '2026-11-21T12:02:00Z'];
it.each([
  ...NO_NUMBERS,
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
  forAll(100, fc.nat(LONGEST / 1_000), (seconds) => {
    const text = new Date(NOW + seconds * 1_000).toUTCString();
    expect(parseRetryAfter(text, NOW)).toBe(seconds * 1_000);
  });
});
