import { BlockList, isIP } from 'node:net';

/** Most peers whose verdict is remembered; there are as many as proxies, unless strangers reach the listener. */
const MOST_PEERS = 1_000;

/**
 * Fastify's `trustProxy` for addresses and CIDRs; none: false, so that no header of a proxy counts. Each peer is
 * compared once: the comparison costs more than the rest of the check of HTTPS.
 * @throws when one of them is neither.
 */
export function trustedProxies(proxies: readonly string[]): false | ((address: string) => boolean) {
  if (proxies.length === 0) return false;
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', prefix, ...more] = proxy.split('/');
    const family = familyOf(address);
    const widest = family === 'ipv4' ? 32 : 128;
    const bits = Number(prefix ?? widest);
    if (family === undefined || more.length > 0 || !Number.isInteger(bits) || bits < 0 || bits > widest) {
      throw new Error(`TRUSTED_PROXIES: not an address or a CIDR: ${proxy}`);
    }
    list.addSubnet(address, bits, family);
  }
  const verdicts = new Map<string, boolean>();
  return (address) => {
    let verdict = verdicts.get(address);
    if (verdict === undefined) {
      const family = familyOf(address);
      verdict = family !== undefined && list.check(address, family);
      if (verdicts.size >= MOST_PEERS) verdicts.clear();
      verdicts.set(address, verdict);
    }
    return verdict;
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? 'ipv4' : 'ipv6';
}
