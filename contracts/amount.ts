import { z } from 'zod';
import { amountText, parsePence, type AmountFault } from '../domain/money';

/** Every amount that we send: pounds, always with two decimals. */
export const ANSWERED_AMOUNT = '^\\d+\\.\\d{2}$';

export const answeredAmount = (example: string, description?: string) =>
  z.string().meta({ ...(description && { description }), pattern: ANSWERED_AMOUNT, examples: [example] });

/** An amount as sent. */
export interface Amount {
  /** Integer pence; `Infinity` past twelve integer digits, which only a loan may have (it is then too high). */
  readonly pence: number;
  /** The figure in pounds as a JSON number, for `details`. */
  readonly pounds: number;
}

/** What the document says of each rule; the check itself is below, because its error codes are finer than a schema's. */
const DOCUMENTED = {
  positive: { pattern: '^([1-9]\\d*(\\.\\d{1,2})?|0\\.(0[1-9]|[1-9]\\d?))$', exclusiveMinimum: 0 },
  'not negative': {
    pattern: '^(0|[1-9]\\d{0,11})(\\.\\d{1,2})?$',
    minimum: 0,
    maximum: 999_999_999_999.99,
  },
} as const;

/**
 * An amount in pounds: a string of digits with at most two decimals, or a JSON number.
 * More than two decimals is `INVALID_AMOUNT_FORMAT`, anything else wrong is `INVALID_REQUEST`.
 */
export function amountSchema(field: string, rule: 'positive' | 'not negative', about: string) {
  const example = rule === 'positive' ? '1000.00' : '0.00';
  const { pattern, ...range } = DOCUMENTED[rule];
  const wire = z.union([
    z.string().meta({ pattern, examples: [example] }),
    z.number().meta({
      ...range,
      description: 'Accepted for older clients, with at most two decimal places; send a string.',
    }),
  ]);
  return wire
    .transform((sent, context): Amount => {
      const text = amountText(sent);
      const parsed = parsePence(text);
      if (parsed.ok && (parsed.pence > 0 || rule === 'not negative')) {
        return { pence: parsed.pence, pounds: parsed.pence / 100 };
      }
      const fault = parsed.ok ? 'zero' : parsed.reason;
      if (fault === 'too_large' && rule === 'positive') {
        return { pence: Infinity, pounds: Math.min(Number(text), Number.MAX_VALUE) };
      }
      const code = fault === 'decimals' ? 'INVALID_AMOUNT_FORMAT' : 'INVALID_REQUEST';
      const message = `${field} ${complaint(fault, text, example)}`;
      context.addIssue({ code: 'custom', message, params: { code } });
      return z.NEVER;
    })
    .meta({ description: about });
}

/** What is wrong with an amount, as the rest of a sentence that begins with its field. */
function complaint(fault: AmountFault | 'zero', text: string, example: string): string {
  if (fault === 'zero') return 'must be greater than zero.';
  if (fault === 'decimals') return 'must have at most two decimal places.';
  if (fault === 'too_large') return 'is too large.';
  if (text.startsWith('-')) return 'must not be negative.';
  return `must be a plain amount in pounds such as "${example}": no comma, symbol or exponent.`;
}
