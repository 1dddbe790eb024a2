import * as fc from 'fast-check';
import { parseRetryAfter } from '../../domain/retry-schedule';

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
  '+5',
  '1.5',
  '1e3',
  '0x10',
  '१२०',
  '120 s',
  '120, 60',
  'soon',
  'NaN',
  'Infinity',
  '2026-11-21T12:02:00Z',
  'Sat, 21 Nov 2026 12:02:00',
  'Sat, 21 Nov 2026 12:02:00 UTC',
  'Sat, 21 Nov 2026 12:02:00 +0100',
  'Sat, 31 Nov 2026 12:00:00 GMT',
  'Sat, 29 Feb 2026 12:00:00 GMT',
  'Sat, 00 Nov 2026 12:00:00 GMT',
  'Sat, 21 Nov 2026 24:00:00 GMT',
  'Sat, 21 Nov 2026 12:60:00 GMT',
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
