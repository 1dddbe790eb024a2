import ipaddr from 'ipaddr.js';

/**
 * What counts as one source: an IPv4 address, also in its IPv6 form; of IPv6 the /64, the least that one customer is given.
 * @param address as Node or Fastify names a peer.
 */
export function sourceOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? `${parsed.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`
    : parsed.toString();
}
