import * as fc from 'fast-check';
import { intervalBetween } from '../support/calendar';

it.each([
  ['2026-11-21', '2026-11-21', 0, 0, 365],
  ['2026-11-21', '2026-12-20', 0, 29, 365],
  ['2026-11-21', '2027-11-21', 12, 0, 365],
  ['2023-01-31', '2023-02-28', 0, 28, 365],
  ['2023-02-28', '2023-03-31', 1, 0, 365],
  ['2024-01-15', '2024-02-29', 1, 14, 365],
  ['2024-02-28', '2024-03-01', 0, 2, 366],
  ['2024-02-29', '2025-02-28', 11, 28, 366],
  ['2100-02-20', '2100-03-01', 0, 9, 365],
] as const)('counts %s to %s as %d months and %d days of %d', (from, to, months, days, daysInYear) => {
  expect(intervalBetween(from, to)).toMatchObject({ months, days, daysInYear });
});

it.each(['2026-02-29', '2026-13-01', '2026-00-10', '2026-04-31', '21-11-2026', '2026-11-21T00:00', ''])(
  'refuses %j, which is no day',
  (day) => {
    expect(() => intervalBetween(day, '2027-01-01')).toThrow(RangeError);
  },
);

it('refuses an end before its start', () => {
  expect(() => intervalBetween('2026-11-21', '2026-11-20')).toThrow(RangeError);
});

it('stays within six days of the real time between, and never counts a whole month as days', () => {
  const day = fc.date({ min: new Date('1999-01-01'), max: new Date('2060-01-01'), noInvalidDate: true });
  fc.assert(
    fc.property(day, fc.integer({ min: 0, max: 15_000 }), (start, span) => {
      const end = new Date(start.getTime() + span * 86_400_000);
      const { months, days, years } = intervalBetween(
        start.toISOString().slice(0, 10),
        end.toISOString().slice(0, 10),
      );
      expect(days).toBeLessThanOrEqual(30);
      expect(months).toBeGreaterThanOrEqual(0);
      expect(Math.abs(years - span / 365.2425)).toBeLessThan(6 / 365);
    }),
    { numRuns: 1_000 },
  );
});
