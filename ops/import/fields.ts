import { z } from 'zod';

/** Says "is required" for what is absent, and the given words for what is of the wrong type. */
const typed = (expected: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is required' : `must be ${expected}`;

/** Control characters (NUL among them) and halves of surrogate pairs: Postgres or a page would trip over them. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

/** A line of text for people. */
export const text = (most: number) =>
  z
    .string({ error: typed('text in quotes') })
    .refine((value) => value.trim() !== '', 'must not be empty')
    .refine((value) => value === value.trim(), 'must not begin or end with white space')
    .refine((value) => !UNPRINTABLE.test(value), 'must not hold control characters')
    .refine((value) => value.length <= most, `must be at most ${most} characters long`);

export const flag = z.boolean({ error: typed('true or false') });

export const choice = <const T extends readonly [string, ...string[]]>(options: T) =>
  z.enum(options, { error: typed(`one of ${options.join(', ')}`) });

/** A whole number in a range; a JSON number. */
export const whole = (low: number, high: number) => {
  const expected = `a whole number from ${low} to ${high}, without quotes`;
  return z
    .int({ error: typed(expected) })
    .refine((value) => value >= low && value <= high, `must be ${expected}`);
};

/** Pounds with exactly two decimals, as text; read as pence. */
export const amount = z
  .string({ error: typed('an amount in quotes with two decimals, such as "1000.00"') })
  .regex(
    /^(0|[1-9]\d{0,11})\.\d{2}$/,
    'must be an amount with two decimals and nothing else, such as "1000.00"',
  )
  .transform((value) => Number(value.replace('.', '')));

/**
 * A percentage as text, read as an integer of 1/scale of a percent.
 * @param decimals most decimals it may have; the scale is ten to that power.
 */
export const percent = (decimals: number, most: number, example: string) => {
  const expected = `a percentage in quotes with at most ${decimals} ${decimals === 1 ? 'decimal' : 'decimals'}, such as "${example}"`;
  return z
    .string({ error: typed(expected) })
    .regex(new RegExp(`^(0|[1-9]\\d{0,5})(\\.\\d{1,${decimals}})?$`), `must be ${expected}`)
    .transform((value) => {
      const [units = '0', rest = ''] = value.split('.');
      return Number(units + rest.padEnd(decimals, '0'));
    })
    .refine((value) => value <= most * 10 ** decimals, `must be at most ${most}`);
};

/** 2026-02-31 parses as 3 March: a real day comes back as it went in. */
function isCalendarDay(text: string): boolean {
  if (!/^2\d{3}-\d{2}-\d{2}$/.test(text)) return false;
  const parsed = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(text);
}

/** A day of the calendar from 2000 on, YYYY-MM-DD. */
export const day = z
  .string({ error: typed('a day in quotes, such as "2027-01-31"') })
  .refine(isCalendarDay, 'must be a day of the calendar, such as "2027-01-31"');

export const merchantId = z
  .string({ error: typed('text in quotes') })
  .regex(
    /^(M\d{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$/,
    'must be M and six or seven digits, or two capital letters and three groups of four joined by hyphens',
  );

export const partnerId = z
  .string({ error: typed('text in quotes') })
  .regex(/^P\d{6}$/, 'must be the letter P and six digits');
