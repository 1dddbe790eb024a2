type Rounding = 'half_up' | 'floor' | 'ceil';

export type AmountFault = 'format' | 'decimals' | 'too_large';

type ParsedPence =
  { readonly ok: true; readonly pence: number } | { readonly ok: false; readonly reason: AmountFault };

/** More digits of pounds than any price has. In pence they are far below 2^53. */
const MOST_INTEGER_DIGITS = 12;

const AMOUNT = /^(0|[1-9]\d*)(?:\.(\d+))?$/;

/**
 * Reads an amount in pounds ("1", "1.5", "1.50") as integer pence. `format`: not
 * `^(0|[1-9]\d*)(\.\d+)?$`; `decimals`: more than two of them; `too_large`: past twelve integer digits.
 * Both of the last two are `decimals`.
 */
export function parsePence(text: string): ParsedPence {
  const match = AMOUNT.exec(text);
  const pounds = match?.[1];
  if (pounds === undefined) return { ok: false, reason: 'format' };
  const decimals = match?.[2] ?? '';
  if (decimals.length > 2) return { ok: false, reason: 'decimals' };
  if (pounds.length > MOST_INTEGER_DIGITS) return { ok: false, reason: 'too_large' };
  return { ok: true, pence: Number(pounds) * 100 + Number(decimals.padEnd(2, '0')) };
}

/**
 * The text of an amount as JSON carried it: a string as it is, a number by its shortest decimal form
 * without exponent (1e21 → "1000000000000000000000", 1e-7 → "0.0000001", -0 → "0").
 * @returns '' for NaN and the infinities, which {@link parsePence} refuses as `format`
 */
export function amountText(value: string | number): string {
  if (typeof value === 'string') return value;
  if (!Number.isFinite(value)) return '';
  const shortest = String(value);
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(shortest);
  if (match === null) return shortest;
  const [, sign = '', lead = '', tail = '', exponentText = '0'] = match;
  const digits = lead + tail;
  const exponent = Number(exponentText);
  // String() uses exponents from 1e21 up and below 1e-6, so the point never falls inside the digits.
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  return sign + digits.padEnd(exponent + 1, '0');
}

/**
 * Pence with exactly two decimals: 123450 → "1234.50".
 * @throws RangeError unless a safe integer
 */
export function formatPence(pence: number): string {
  if (!Number.isSafeInteger(pence)) throw new RangeError(`not an amount in whole pence: ${pence}`);
  const rest = Math.abs(pence) % 100;
  const pounds = (Math.abs(pence) - rest) / 100;
  return `${pence < 0 ? '-' : ''}${pounds}${rest < 10 ? '.0' : '.'}${rest}`;
}

/**
 * Pence for people: 123450 → "£1,234.50".
 * @throws RangeError unless a safe integer
 */
export function formatPounds(pence: number): string {
  const plain = formatPence(Math.abs(pence));
  // There is nothing to group below a thousand.
  if (plain.length <= 6) return `${pence < 0 ? '-' : ''}£${plain}`;
  const grouped = plain.slice(0, -3).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
  return `${pence < 0 ? '-' : ''}£${grouped}${plain.slice(-3)}`;
}

/**
 * Quotient and remainder, both exact.
 * @throws RangeError unless numerator ≥ 0 and denominator > 0, safe integers
 */
function divide(numerator: number, denominator: number): { quotient: number; remainder: number } {
  if (!Number.isSafeInteger(numerator) || numerator < 0) throw new RangeError(`cannot divide ${numerator}`);
  if (!Number.isSafeInteger(denominator) || denominator <= 0)
    throw new RangeError(`cannot divide by ${denominator}`);
  const remainder = numerator % denominator;
  return { quotient: (numerator - remainder) / denominator, remainder };
}

/** numerator / denominator to the nearest integer, halves up; see {@link divide} for ranges. */
export function divideHalfUp(numerator: number, denominator: number): number {
  const { quotient, remainder } = divide(numerator, denominator);
  return remainder >= denominator - remainder ? quotient + 1 : quotient;
}

/** numerator / denominator rounded down; see {@link divide} for ranges. */
export function divideFloor(numerator: number, denominator: number): number {
  return divide(numerator, denominator).quotient;
}

/** numerator / denominator rounded up; see {@link divide} for ranges. */
export function divideCeil(numerator: number, denominator: number): number {
  const { quotient, remainder } = divide(numerator, denominator);
  return remainder > 0 ? quotient + 1 : quotient;
}

export const DIVISIONS: Readonly<Record<Rounding, (numerator: number, denominator: number) => number>> = {
  half_up: divideHalfUp,
  floor: divideFloor,
  ceil: divideCeil,
};

/** A billionth of a penny: the error of an amount below £20,000 after the steps of a level payment. */
const ABSOLUTE_NOISE = 1e-9;
/** 2^-49, eight times the spacing of doubles, for larger amounts. At £2,000,000 it is 4e-7 pence. */
const RELATIVE_NOISE = 2 ** -49;

/**
 * Rounds an amount in pence computed in doubles. A value within the noise of an integer or a half counts
 * as that: 10500.0000000001 is 10500 rounded up, 10499.9999999999 is 10500 rounded down, 2.4999999999 is
 * 3 rounded half-up. An honest value so near is rarer than one in a million.
 * @param value any finite double
 */
export function roundPence(value: number, rounding: Rounding): number {
  const noise = Math.max(ABSOLUTE_NOISE, Math.abs(value) * RELATIVE_NOISE);
  if (rounding === 'half_up') return Math.floor(value + 0.5 + noise);
  return rounding === 'floor' ? Math.floor(value + noise) : Math.ceil(value - noise) + 0; // + 0: -0 becomes 0
}
