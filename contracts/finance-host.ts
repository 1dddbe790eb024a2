import { toASCII } from 'tr46';
import { parsedUrl } from '../domain/parsed-url';

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
 * Whether a URL's host, without its port, is a domain name that UTS 46 accepts under its strict rules, or an IP address as a URL
 * parser reads it. Names are never put to Node's parser: since Node 24 it takes Punycode that decodes to nothing, and what it
 * knows of Unicode differs between versions.
 */
export function isFinanceHost(host: string): boolean {
  if (host.length <= LONGEST_NAME && PLAIN_NAME.test(host)) return true;
  if (host.startsWith('[')) return parsedUrl(`https://${host}/`) !== undefined;
  const name = toASCII(host, STRICT);
  return name !== null && (!NUMBER.test(name) || parsedUrl(`https://${name}/`) !== undefined);
}
