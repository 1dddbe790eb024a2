import { formatPence } from './money';

/** Parameters of ours on a merchant's URL; `quote_id` is the older name, which is never written. */
const OUR_NAMES = [
  'service_quote_id',
  'quote_id',
  'loan_amount',
  'customer_deposit',
  'credit_product',
  'merchant_reference',
] as const;
const OUR_PARAMETERS: ReadonlySet<string> = new Set(OUR_NAMES);

interface LinkBase {
  /** The merchant's finance page, a valid https URL. */
  readonly merchantFinanceUrl: string;
  readonly quoteId: string;
  readonly merchantReference: string | null;
}

/** Builds one link; `creditProduct` is null for that of the summary. */
export type FinanceLinks = (loanPence: number, depositPence: number, creditProduct: string | null) => string;

const UNRESERVED_OR_SPACE = /^[\w.~ -]*$/;

/** Percent-encodes all but RFC 3986 unreserved characters. Half a surrogate pair becomes U+FFFD. */
function encode(text: string): string {
  if (UNRESERVED_OR_SPACE.test(text)) return text.replaceAll(' ', '%20');
  const wellFormed = /[\ud800-\udfff]/.test(text) ? text.replaceAll(/\p{Surrogate}/gu, '\uFFFD') : text;
  const encoded = encodeURIComponent(wellFormed);
  if (!/[!'()*]/.test(encoded)) return encoded;
  return encoded.replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Encoded product names, few of which are needed for every quote. Emptied when full. */
const encodedNames = new Map<string, string>();
const MOST_ENCODED_NAMES = 10_000;

function encodeName(name: string): string {
  let encoded = encodedNames.get(name);
  if (encoded === undefined) {
    encoded = encode(name);
    if (encodedNames.size >= MOST_ENCODED_NAMES) encodedNames.clear();
    encodedNames.set(name, encoded);
  }
  return encoded;
}

/** A query without a match has none of our parameters. A name may have escapes. */
const MAYBE_OURS = new RegExp(`[%+]|${OUR_NAMES.join('|')}`);

/** The name of a `name=value` pair, decoded as in a form: `+` is a space, bad escapes stay. */
function parameterName(pair: string): string {
  const name = pair.split('=', 1)[0] ?? '';
  if (!name.includes('%') && !name.includes('+')) return name;
  for (const key of new URLSearchParams(name).keys()) return key;
  return '';
}

function withoutOurs(query: string): string {
  if (!MAYBE_OURS.test(query)) return query;
  const pairs = query.split('&').filter((pair) => !OUR_PARAMETERS.has(parameterName(pair)));
  return pairs.join('&');
}

/** The merchant's URL up to our parameters (with `?` or `&`), and its fragment, both unchanged. */
function splitUrl(merchantUrl: string): { before: string; fragment: string } {
  const hash = merchantUrl.indexOf('#');
  const fragment = hash < 0 ? '' : merchantUrl.slice(hash);
  const page = hash < 0 ? merchantUrl : merchantUrl.slice(0, hash);
  const mark = page.indexOf('?');
  if (mark < 0) return { before: `${page}?`, fragment };
  const own = withoutOurs(page.slice(mark + 1));
  const separator = own === '' ? '' : '&';
  return { before: `${page.slice(0, mark)}?${own}${separator}`, fragment };
}

/**
 * Prepares the links of one quote: the merchant's URL with its own query and fragment unchanged, then
 * `loan_amount`, `customer_deposit`, `credit_product` (product links), `service_quote_id` and, when one
 * was sent, `merchant_reference`. Parameters of ours that were there are dropped, as is `quote_id`.
 */
export function prepareLinks({ merchantFinanceUrl, quoteId, merchantReference }: LinkBase): FinanceLinks {
  const { before, fragment } = splitUrl(merchantFinanceUrl);
  const reference = merchantReference === null ? '' : `&merchant_reference=${encode(merchantReference)}`;
  const after = `&service_quote_id=${encode(quoteId)}${reference}${fragment}`;
  return (loanPence, depositPence, creditProduct) => {
    const product = creditProduct === null ? '' : `&credit_product=${encodeName(creditProduct)}`;
    const amounts = `loan_amount=${formatPence(loanPence)}&customer_deposit=${formatPence(depositPence)}`;
    return before + amounts + product + after;
  };
}

/**
 * Our parameters of a link, decoded, each the first of its name. The caller checks that the text is a
 * URL.
 * @returns `sent`: null for an absent parameter; `repeated`: one that the link has twice
 */
export function linkParameters(link: string) {
  const page = link.split('#', 1)[0] ?? '';
  const mark = page.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : page.slice(mark + 1));
  const repeated = OUR_NAMES.find((name) => query.getAll(name).length > 1) ?? null;
  const sent = Object.fromEntries(OUR_NAMES.map((name) => [name, query.get(name)]));
  return { sent: sent as Record<(typeof OUR_NAMES)[number], string | null>, repeated };
}
