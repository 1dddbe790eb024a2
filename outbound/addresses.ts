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

/** Allows public addresses, and what lies in these CIDRs. @throws OutboundConfigError for one that is malformed. */
export function createAddressGuard(allowedCidrs: readonly string[]): AddressGuard {
  const allowed = allowedCidrs.map(parseCidr);
  return (address) => {
    if (isPublicAddress(address)) return true;
    if (isIP(address) === 0) return false;
    const parsed = ipaddr.parse(address);
    return allowed.some((cidr) => matches(parsed, cidr));
  };
}

/** A setting of ours that cannot be used. */
export class OutboundConfigError extends Error {
  override readonly name = 'OutboundConfigError';
}

/**
 * Reads the list of private targets: CIDRs separated by commas.
 * @throws OutboundConfigError for a malformed one, and for any at all in production.
 */
export function parseAllowedCidrs(text: string, { production }: { production: boolean }): readonly string[] {
  const cidrs = items(text);
  if (production && cidrs.length > 0) {
    throw new OutboundConfigError('private webhook targets cannot be allowed in production');
  }
  cidrs.forEach(parseCidr);
  return cidrs;
}

/**
 * Reads the list of ports that are allowed besides 443, separated by commas.
 * @throws OutboundConfigError for one that is no port, and for any at all in production.
 */
export function parseAllowedPorts(text: string, { production }: { production: boolean }): readonly number[] {
  const ports = items(text);
  if (production && ports.length > 0) {
    throw new OutboundConfigError('webhook ports other than 443 cannot be allowed in production');
  }
  return ports.map((port) => {
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
      throw new OutboundConfigError(`not a port: ${port}`);
    }
    return Number(port);
  });
}

function items(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

type Parsed = ReturnType<typeof ipaddr.parse>;
type Cidr = ReturnType<typeof ipaddr.parseCIDR>;

function parseCidr(text: string): Cidr {
  // The library alone would take `10/8`.
  if (isIP(text.split('/', 1)[0] ?? '') === 0 || !ipaddr.isValidCIDR(text))
    throw new OutboundConfigError(`not a CIDR such as 127.0.0.0/8: ${text}`);
  return ipaddr.parseCIDR(text);
}

function matches(address: Parsed, cidr: Cidr): boolean {
  return address.kind() === cidr[0].kind() && address.match(cidr);
}
