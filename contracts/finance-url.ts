/**
 * Characters that no URL may hold (RFC 3986 §2; "URL code points" of the WHATWG), of which some are dropped or rewritten
 * by parsers silently, and some end an HTML attribute: control characters, white space, `"<>\^{|}`, the backtick, a byte
 * order mark and halves of surrogate pairs.
 */
const NOT_IN_URL = '\\u0000-\\u0020\\u007f-\\u00a0\\u2028\\u2029\\ufeff\\ud800-\\udfff"<>\\\\^`{|}';

/** A finance page's URL as it is sent and comes back; letters beyond ASCII may stand in it as they are. */
export const FINANCE_URL_PATTERN = `^[Hh][Tt][Tt][Pp][Ss]://[^/?#${NOT_IN_URL}][^${NOT_IN_URL}]*$`;

const FINANCE_URL = new RegExp(FINANCE_URL_PATTERN, 'u');

/** Whether it is a full https:// URL without user name and password. */
export function isFinancePage(text: string): boolean {
  if (!FINANCE_URL.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === '' && url.password === '';
}
