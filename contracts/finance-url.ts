import { toASCII } from 'tr46';
import { parsedUrl } from '../domain/webhook-url';

/** Longest finance page that a partner may send, in code points; a link made of it is longer. */
export const LONGEST_FINANCE_URL = 2_048;

/**
 * Characters that no URL may contain (RFC 3986 §2; "URL code points" of the WHATWG), of which some are dropped or rewritten
 * by parsers silently, and some end an HTML attribute: control characters, Unicode's White_Space, a byte order mark,
 * `"<>\^{|}` and the backtick. Spelled out, because the pattern below is published.
 */
const NOT_IN_URL =
  '\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"<>\\\\^`{|}';

/** A finance page's URL as it is sent and comes back; letters beyond ASCII may stand in it as they are. */
export const FINANCE_URL_PATTERN = `^[Hh][Tt][Tt][Pp][Ss]://[^/?#@${NOT_IN_URL}]+([/?#][^${NOT_IN_URL}]*)?$`;

/** Half a surrogate pair. Not in the pattern above: it is published, and RE2 and Rust's regex cannot read such a class. */
const LONE_SURROGATE = '\\ud800-\\udfff';

const FORBIDDEN = new RegExp(`[${NOT_IN_URL}${LONE_SURROGATE}]`, 'u');
const SCHEME = /^https:\/\//i;
const AUTHORITY_END = /[/?#]/;
/** Host and port; an IPv6 address has colons of its own. */
const HOST_AND_PORT = /^(\[[^\]]*\]|[^:[]*)(?::(.*))?$/;
const HIGHEST_PORT = 65_535;

/**
 * What is wrong with a finance page's URL, as the end of a sentence that begins with the field's name; null when it is a
 * full https:// URL without user name and password. The answer is the same on every version of Node.
 */
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

/** Every check that UTS 46 knows, which is what the WHATWG's URL standard calls strict. */
const STRICT = {
  checkHyphens: true,
  checkBidi: true,
  checkJoiners: true,
  useSTD3ASCIIRules: true,
  verifyDNSLength: true,
};
const LONGEST_NAME = 253;
/** Names that UTS 46 leaves as they are: lower-case labels, none with hyphens in both the third and fourth position. */
const PLAIN_NAME =
  /^(?:(?!..--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!..--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A last label that makes a URL parser read the host as an IPv4 address. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/**
 * Whether a URL's host, without its port, is a domain name that UTS 46 accepts under its strict rules, or an IP address as
 * a URL parser reads it. Names are never put to Node's parser: since Node 24 it takes Punycode that decodes to nothing, and
 * what it knows of Unicode differs between versions.
 */
export function isFinanceHost(host: string): boolean {
  if (host.length <= LONGEST_NAME && PLAIN_NAME.test(host)) return true;
  if (host.startsWith('[')) return parsedUrl(`https://${host}/`) !== undefined;
  const name = toASCII(host, STRICT);
  return name !== null && (!NUMBER.test(name) || parsedUrl(`https://${name}/`) !== undefined);
}

/** The code point, and the character itself where it can be seen: U+007B ({). */
function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return code > 0x20 && code < 0x7f ? `${name} (${character})` : name;
}

export function isTooLong(text: string): boolean {
  return text.length > LONGEST_FINANCE_URL && [...text].length > LONGEST_FINANCE_URL;
}
