import { parsedUrl } from '../domain/parsed-url';

/**
 * Characters that no URL may hold (RFC 3986 §2; "URL code points" of the WHATWG), of which some are dropped or rewritten
 * by parsers silently, and some end an HTML attribute: control characters, white space, `"<>\^{|}`, the backtick and a byte
 * order mark.
 */
const NOT_IN_URL = '\\u0000-\\u0020\\u007f-\\u00a0\\u2028\\u2029\\ufeff"<>\\\\^`{|}';

/** A finance page's URL as it is sent and comes back; letters beyond ASCII may stand in it as they are. */
export const FINANCE_URL_PATTERN = `^[Hh][Tt][Tt][Pp][Ss]://[^/?#${NOT_IN_URL}][^${NOT_IN_URL}]*$`;

const FINANCE_URL = new RegExp(FINANCE_URL_PATTERN, 'u');

/** Half a surrogate pair. Not in the pattern above: it is published, and RE2 and Rust's regex cannot read such a class. */
const LONE_SURROGATE = /[\ud800-\udfff]/u;

/**
 * URLs that need no parser to be judged: a host of plain labels, none of them Punycode, the last without a digit (it might be a
 * number else), and no port.
 */
const PLAIN_HOST = /^https:\/\/(?:(?!xn--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?!xn--)[a-z]+(?:[/?#]|$)/;

/** Whether it is a full https:// URL without user name and password. */
export function isFinancePage(text: string): boolean {
  if (!FINANCE_URL.test(text) || LONE_SURROGATE.test(text)) return false;
  if (PLAIN_HOST.test(text)) return true;
  const url = parsedUrl(text);
  return url !== undefined && url.username === '' && url.password === '';
}
