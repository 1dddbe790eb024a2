import {
  describeOutcome,
  outcomeOfStatus,
  judgeFailing,
  DELIVERY_LADDER_MS,
  TEST_LADDER_MS,
  parseRetryAfter,
} from '../../domain/delivery-outcome';
import * as fc from 'fast-check';
import { forAll } from './builders';

it.each([200, 201, 202, 204, 250, 299])('%d is delivered', (status) => {
  const outcome = outcomeOfStatus(status, 83, 5_000);
  expect(outcome).toEqual({ kind: 'delivered', httpStatus: status, durationMs: 83 });
  expect(describeOutcome(outcome)).toBe(`delivered: ${status} (83 ms)`);
});

it.each([
  ...[300, 304, 399].map((status) => [status, 'redirect'] as const),
  ...[400, 429, 500, 599, 999].map((status) => [status, 'http_status'] as const),
  [410, 'gone'] as const,
])('%d is a failure, %s', (httpStatus, failure) => {
  const outcome = outcomeOfStatus(httpStatus, 1_500, null);
  expect(outcome).toEqual({ kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: null });
});

it.each([
  ['http_status', 500, 'answered 500 (1.5 s); asks to wait 120 s'],
  ['redirect', 302, 'answered 302, a redirect, which is not followed (1.5 s); asks to wait 120 s'],
] as const)('%s is described in one line', (failure, httpStatus, text) => {
  const outcome = { kind: 'failed', failure, httpStatus, durationMs: 1_500, retryAfterMs: 120_000 } as const;
  expect(describeOutcome(outcome)).toBe(text);
});

const WITHOUT_STATUS = ['connect', 'timeout', 'tls', 'dns', 'reset', 'blocked_address', 'protocol'] as const;
it.each(WITHOUT_STATUS)('%s without a status is described without one', (failure) => {
  const outcome = { kind: 'failed', failure, httpStatus: null, durationMs: 5, retryAfterMs: null } as const;
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
const HOUR = 3_600 * SECOND;
test('the ladder has 11 attempts over 75.6 hours, the test ladder 3 over 35 seconds', () => {
  const sum = (ladder: readonly number[]) => ladder.reduce((total, step) => total + step, 0);
  expect(DELIVERY_LADDER_MS).toHaveLength(11);
  expect(sum(DELIVERY_LADDER_MS) / HOUR).toBeCloseTo(75.6, 1);
  expect(TEST_LADDER_MS).toEqual([0, 5 * SECOND, 30 * SECOND]);
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
  ['Sat, 21 Nov 2026 12:02:00 UTC', 120_000],
  ['Sat, 21 Nov 2026 12:02:00 +0000', 120_000],
  ['Sat, 21 Nov 2026 12:02:00 -0000', 120_000],
  ['Tue, 1 Dec 2026 12:00:00 GMT', 10 * 86_400_000],
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
