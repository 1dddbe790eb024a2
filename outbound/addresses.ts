import { isIP } from 'node:net';
import * as ipaddr from 'ipaddr.js';

export type AddressGuard = (address: string) => boolean;

/** Public by number, private by use: the metadata service of Azure hosts. */
const PRIVATE_ALL_THE_SAME = ipaddr.parseCIDR('168.63.129.16/32');
/** All of IPv6 that is given out for the Internet: of 2000::/3 the upper half is reserved, with what 6bone gave back (3ffe::/16). */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/4');

/**
 * Whether an address is a public one: outside every IANA special-purpose range, and not one that carries an IPv4 address
 * in IPv6 (mapped, NAT64, 6to4, Teredo), whatever that address is. Text that is no address is not public.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' ? !matches(parsed, PRIVATE_ALL_THE_SAME) : matches(parsed, GLOBAL_IPV6);
}

/** Allows public addresses, and what lies in these CIDRs. @throws for one that is malformed. */
export function createAddressGuard(allowedCidrs: readonly string[]): AddressGuard {
  const allowed = allowedCidrs.map(parseCidr);
  return (address) => {
    if (isPublicAddress(address)) return true;
    if (isIP(address) === 0) return false;
    const parsed = ipaddr.parse(address);
    return allowed.some((cidr) => matches(parsed, cidr));
  };
}

type Parsed = ReturnType<typeof ipaddr.parse>;
type Cidr = ReturnType<typeof ipaddr.parseCIDR>;

function parseCidr(text: string): Cidr {
  // The library alone would take `10/8`.
  if (isIP(text.split('/', 1)[0] ?? '') === 0 || !ipaddr.isValidCIDR(text))
    throw new Error(`not a CIDR such as 127.0.0.0/8: ${text}`);
  return ipaddr.parseCIDR(text);
}

function matches(address: Parsed, cidr: Cidr): boolean {
  return address.kind() === cidr[0].kind() && address.match(cidr);
}
