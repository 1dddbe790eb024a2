import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { AddressGuard } from './addresses';
import { codeOf, DeliveryFault } from './delivery-fault';
import { withTimeout } from '../timing/timeout';

/** The two questions we ask of DNS. Node's own `Resolver` is one. */
export type AddressResolver = Pick<Resolver, 'resolve4' | 'resolve6'>;

/**
 * Tries within the 5 s that a name may take: a lost packet costs a try, not the attempt. c-ares shortens the first to a
 * quarter of a second for a server that has been fast, and doubles it from try to try: with fewer of them a name that
 * takes a second would fail just because others do not.
 */
const QUERY_TIMEOUT_MS = 2_000;
const TRIES = 5;
/** When one family has answered, the other is waited for this long: its servers are the same, and answer now or never. */
const OTHER_FAMILY_MS = 1_000;

/**
 * A resolver on c-ares: it holds no thread while it waits, as `dns.lookup` does, of whose four one slow zone would take
 * all. It does not read the hosts file.
 * @param servers addresses with optional ports; by default the system's.
 */
export function createResolver(servers?: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  return resolver;
}

interface ResolveDeps {
  readonly resolver: AddressResolver;
  /** Names that are not asked for: the embedded stack's own. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  readonly isAllowed: AddressGuard;
  readonly dnsMs: number;
}

/**
 * The addresses of a name, IPv4 first, every one of which may be connected to. An answer that holds one that may not be
 * is refused whole: it is either a mistake or an attack.
 * @throws DeliveryFault `dns` or `blocked_address`; any other error is ours.
 */
export async function resolveTarget(
  hostname: string,
  { resolver, hosts, isAllowed, dnsMs }: ResolveDeps,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const addresses = isIP(hostname)
    ? [hostname]
    : (hosts.get(hostname) ??
      (await withTimeout(
        ask(hostname, resolver),
        dnsMs,
        () => new DeliveryFault('dns', 'no answer in time'),
        signal,
      )));
  const blocked = addresses.find((address) => !isAllowed(address));
  if (blocked !== undefined) throw new DeliveryFault('blocked_address', `${blocked} is not a public address`);
  return addresses;
}

async function ask(hostname: string, resolver: AddressResolver): Promise<readonly string[]> {
  const found: string[] = [];
  const errors: Error[] = [];
  const collect = (answer: Promise<string[]>) =>
    answer.then(
      (addresses) => void found.push(...addresses),
      (error: unknown) => void errors.push(error as Error),
    );
  const families = [collect(resolver.resolve4(hostname)), collect(resolver.resolve6(hostname))];
  await Promise.race(families);
  const both = Promise.all(families);
  if (found.length === 0) await both;
  else await withTimeout(both, OTHER_FAMILY_MS, 'the other family').catch(() => undefined);
  if (found.length === 0) throw noAddress(errors);
  return found.toSorted((a, b) => isIP(a) - isIP(b));
}

/** Codes that speak of the name or of its servers. Any other (no DNS server reachable, no memory) is a fault of ours. */
const OF_THE_NAME = /^E(NODATA|NOTFOUND|SERVFAIL|REFUSED|NOTIMP|FORMERR|BADRESP|BADNAME|TIMEOUT)$/;

function noAddress(errors: readonly Error[]): Error {
  const ours = errors.find((error) => !OF_THE_NAME.test(codeOf(error)));
  if (ours !== undefined) return ours;
  const cause = errors.find((error) => codeOf(error) !== 'ENODATA') ?? errors[0];
  return new DeliveryFault('dns', codeOf(cause), { cause });
}
