import { toASCII } from 'tr46';
import { z } from 'zod';
import { amountText, parsePence, type AmountFault } from '../domain/money';
import { parsedUrl } from '../domain/webhook';
import { requestBody } from './validate';

export interface Amount {
  /** Integer pence; `Infinity` past twelve digits, which only a loan may have (it is then too high). */
  readonly pence: number;
  /** The figure in pounds as a JSON number, for `details`. */
  readonly pounds: number;
}

/** Each rule in the OpenAPI document. The check is below, as its error codes are finer than a schema's. */
const DOCUMENTED = {
  positive: '^([1-9]\\d*(\\.\\d{1,2})?|0\\.(0[1-9]|[1-9]\\d?))$',
  'not negative': '^(0|[1-9]\\d{0,11})(\\.\\d{1,2})?$',
} as const;

/** Pounds: a string with at most two decimals (more: `INVALID_AMOUNT_FORMAT`), or a number, which the document only mentions. */
export function amountSchema(field: string, rule: keyof typeof DOCUMENTED, about: string) {
  const example = rule === 'positive' ? '1000.00' : '0.00';
  const wire = z.union([z.string().meta({ pattern: DOCUMENTED[rule], examples: [example] }), z.number()], {
    error: `${field} must be a string such as "${example}".`,
  });
  return wire
    .transform((sent, context): Amount => {
      const text = amountText(sent);
      const parsed = parsePence(text);
      if (parsed.ok && (parsed.pence > 0 || rule === 'not negative'))
        return { pence: parsed.pence, pounds: parsed.pence / 100 };
      const fault = parsed.ok ? 'zero' : parsed.reason;
      if (fault === 'too_large' && rule === 'positive')
        return { pence: Infinity, pounds: Math.min(Number(text), Number.MAX_VALUE) };
      const code = fault === 'decimals' ? 'INVALID_AMOUNT_FORMAT' : 'INVALID_REQUEST';
      const message = `${field} ${complaint(fault, text, example)}`;
      context.addIssue({ code: 'custom', message, params: { code } });
      return z.NEVER;
    })
    .meta({ description: `${about} A JSON number is still accepted from older clients.` });
}

/** The fault of an amount, to follow its field's name. */
function complaint(fault: AmountFault | 'zero', text: string, example: string): string {
  if (fault === 'zero') return 'must be greater than zero.';
  if (fault === 'decimals') return 'must have at most two decimal places.';
  if (fault === 'too_large') return 'is too large.';
  if (text.startsWith('-')) return 'must not be negative.';
  return `must be a plain amount in pounds such as "${example}": no comma, symbol or exponent.`;
}

/** Longest finance page that a partner may send, in code points. */
const LONGEST_FINANCE_URL = 2_048;

// Characters that no URL may contain (RFC 3986 §2; "URL code points" of the WHATWG), some of which
// parsers drop or rewrite silently and some of which end an HTML attribute.
const NOT_IN_URL =
  '\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"<>\\\\^`{|}';

// The same for the dialects of public generators: `\u` stops PHP's, a code above 7f cuts letters in two where bytes are compared,
// and a quotation mark or a backtick ends the text around it. A JavaScript `\s` is all white space of the list above.
const NOT_IN_URL_ANYWHERE = '\\s\\x00-\\x20\\x22<>\\x5c\\x5e\\x60\\x7b-\\x7d\\x7f';

/** A finance page's URL as it is sent and comes back, with letters beyond ASCII as they are. */
export const FINANCE_URL_PATTERN = `^[Hh][Tt][Tt][Pp][Ss]://[^/?#@${NOT_IN_URL_ANYWHERE}]+([/?#][^${NOT_IN_URL_ANYWHERE}]*)?$`;

/** Half a surrogate pair. */
const LONE_SURROGATE = '\\ud800-\\udfff';

const FORBIDDEN = new RegExp(`[${NOT_IN_URL}${LONE_SURROGATE}]`, 'u');
const SCHEME = /^https:\/\//i;
const AUTHORITY_END = /[/?#]/;
/** Host and port; an IPv6 address has colons of its own. */
const HOST_AND_PORT = /^(\[[^\]]*\]|[^:[]*)(?::(.*))?$/;
const HIGHEST_PORT = 65_535;

/** The fault of a finance page's URL, to follow the field's name; null for a full https:// URL. */
export function financeUrlFault(text: string): string | null {
  if (!SCHEME.test(text)) return 'must be a full URL that begins with https://.';
  const forbidden = FORBIDDEN.exec(text)?.[0];
  if (forbidden !== undefined)
    return `must not contain the character ${nameOf(forbidden)}: percent-encode it or leave it out.`;
  const rest = text.slice('https://'.length);
  const end = rest.search(AUTHORITY_END);
  const authority = end < 0 ? rest : rest.slice(0, end);
  if (authority.includes('@'))
    return 'must not contain a user name or a password: there is an @ before its host.';
  const [, host = '', port] = HOST_AND_PORT.exec(authority) ?? [];
  if (port !== undefined && (!/^\d*$/.test(port) || Number(port) > HIGHEST_PORT))
    return `must have a port from 0 to ${HIGHEST_PORT}, or none.`;
  if (!isFinanceHost(host))
    return 'must have a valid host: a domain name without empty labels, or an IP address.';
  return null;
}

/** Every check of UTS 46, which the WHATWG's URL standard calls strict. */
const STRICT = {
  checkHyphens: true,
  checkBidi: true,
  checkJoiners: true,
  useSTD3ASCIIRules: true,
  verifyDNSLength: true,
};
const LONGEST_NAME = 253;
// Names that UTS 46 leaves as they are, with no `--` as third and fourth character.
const PLAIN_NAME =
  /^(?:(?!..--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!..--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A last label that makes a URL parser read the host as an IPv4 address. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/**
 * Whether a URL's host, without its port, is a domain name that UTS 46 accepts under its strict rules, or
 * an IP address. Names are never passed to Node's parser: since Node 24 it takes Punycode that decodes to
 * nothing, and its Unicode differs between versions.
 */
export function isFinanceHost(host: string): boolean {
  if (host.length <= LONGEST_NAME && PLAIN_NAME.test(host)) return true;
  if (host.startsWith('[')) return parsedUrl(`https://${host}/`) !== undefined;
  const name = toASCII(host, STRICT);
  return name !== null && (!NUMBER.test(name) || parsedUrl(`https://${name}/`) !== undefined);
}

/** The code point, and the character if it can be seen: U+007B ({). */
function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return code > 0x20 && code < 0x7f ? `${name} (${character})` : name;
}

const partnerIdSchema = z
  .string()
  .regex(/^P\d{6}$/, 'partner_id must be the letter P followed by six digits.')
  .meta({ description: 'The partner that owns the API key.', examples: ['P100001'] });

/** The two forms of a merchant's id (spec 2.2). */
export const MERCHANT_ID = /^(M\d{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$/;

const merchantIdSchema = z
  .string()
  .regex(
    MERCHANT_ID,
    'merchant_id must be the letter M followed by six or seven digits, or two letters and three groups of four characters joined by hyphens.',
  )
  .meta({
    description: 'The merchant, as supplied by the service.',
    examples: ['M100001', 'AB-1C2D-3E4F-5G6H'],
  });

const merchantFinanceUrlSchema = z
  .string()
  .superRefine((sent, context) => {
    const tooLong = sent.length > LONGEST_FINANCE_URL && [...sent].length > LONGEST_FINANCE_URL;
    const fault = tooLong ? `must be at most ${LONGEST_FINANCE_URL} characters long.` : financeUrlFault(sent);
    if (fault !== null) context.addIssue(`merchant_finance_url ${fault}`);
  })
  .meta({
    maxLength: LONGEST_FINANCE_URL,
    pattern: FINANCE_URL_PATTERN,
    description:
      "The merchant's finance page: a domain name that UTS 46 accepts, or an IP address; no user name or password, white space or control characters. Its own query and fragment are kept on every link.",
    examples: ['https://shop.example/finance'],
  });

/** Trimmed; absent, null and blank are null. */
export const merchantReferenceSchema = z
  .string()
  .transform((sent) => sent.trim())
  .pipe(
    z
      .string()
      .max(64, 'merchant_reference must be at most 64 characters.')
      .regex(/^[A-Za-z0-9 ._-]*$/, 'merchant_reference may hold letters, digits, spaces and . - _ only.'),
  )
  .transform((trimmed) => (trimmed === '' ? null : trimmed))
  .nullish()
  .transform((reference) => reference ?? null)
  .meta({
    description:
      "The partner's own reference, returned on the quote and on every notification. No customer details. At most 64 characters: letters, digits, space, `.`, `-`, `_`; trimmed.",
    // Length and characters are checked after trimming.
    pattern: '^\\s*[A-Za-z0-9 ._-]{0,64}\\s*$',
    examples: ['basket 2041'],
  });

/** Body of `POST /v1/finance-quote`, its fields in the order in which they are checked. */
export const quoteRequestSchema = z
  .object({
    merchant_id: merchantIdSchema,
    partner_id: partnerIdSchema,
    loan_amount: amountSchema('loan_amount', 'positive', 'Amount to finance, in pounds.'),
    customer_deposit: amountSchema(
      'customer_deposit',
      'not negative',
      'Deposit offered, in pounds. May be raised to a minimum; counts as 0.00 when omitted.',
    )
      .nullish()
      .transform((amount) => amount ?? null),
    merchant_finance_url: merchantFinanceUrlSchema,
    merchant_reference: merchantReferenceSchema,
  })
  .meta({
    id: 'QuoteRequest',
    description:
      'Unknown fields are ignored and not stored. A field sent twice, and `__proto__` or `constructor.prototype` at any depth, are refused.',
  });

export const quoteRequest = requestBody(quoteRequestSchema, {
  basket: {
    summary: 'A basket of £1,000.00 with a deposit of £100.00',
    value: {
      merchant_id: 'M000001',
      partner_id: 'P100001',
      loan_amount: '900.00',
      customer_deposit: '100.00',
      merchant_finance_url: 'https://shop.example/finance',
      merchant_reference: 'basket 2041',
    },
  },
});

export type QuoteRequestBody = z.infer<typeof quoteRequestSchema>;
