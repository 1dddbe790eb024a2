/** The latest attempt to an endpoint, as one worker saw it. */
export interface EndpointSeen {
  readonly partnerId: string;
  /** The registrable domain of its host, such as `partner.co.uk`. */
  readonly domain: string;
  /** Of its host; those of an earlier attempt when the name was not resolved; none when never known. */
  readonly addresses: readonly string[];
  /** When the attempt began, on a clock that never steps. */
  readonly atMs: number;
  /** Whether a head of HTTP came, with any status. */
  readonly reached: boolean;
}

/**
 * What the attempts say about our own network: `cut_off` since then; `perhaps`: too few endpoints to be
 * sure, and a probe decides; `fine`.
 */
export type Reach =
  { readonly kind: 'cut_off' | 'perhaps'; readonly sinceMs: number } | { readonly kind: 'fine' };

/** Older attempts are ignored. */
export const SEEN_FOR_MS = 60_000;
/** With so many unrelated endpoints the attempts alone decide. */
const ENOUGH = 10;
const FEW = 2;
/** Percent of them that failed. */
const NEARLY_ALL = 95;

/**
 * Decides whether failed attempts are our own network's fault, from the latest attempt to each endpoint in
 * the last minute. They are read newest first: as soon as 95 % of ten or more unrelated endpoints have
 * failed, what was reached before that shows only that the network worked then. Endpoints are unrelated
 * when they share no partner, no registrable domain and no address, so that neither one partner's traffic
 * nor ten partners on one dead host look like an outage; of related ones, one that was reached is enough.
 * @param seen one entry for each endpoint
 */
export function judgeReach(seen: readonly EndpointSeen[], nowMs: number): Reach {
  const recent = seen
    .filter(({ atMs }) => atMs > nowMs - SEEN_FOR_MS)
    .toSorted((one, other) => other.atMs - one.atMs);
  const groups = createGroups();
  let found: Reach = { kind: 'fine' };
  for (const one of recent) {
    groups.add(one);
    const { all, failed } = groups.counts();
    if (all >= ENOUGH ? failed * 100 >= all * NEARLY_ALL : failed === all && all >= FEW)
      found = {
        kind: all >= ENOUGH ? 'cut_off' : found.kind === 'cut_off' ? 'cut_off' : 'perhaps',
        sinceMs: one.atMs,
      };
  }
  return found;
}

/**
 * The endpoints whose attempts count. One with IPv6 alone says nothing about the network, as many machines
 * have no IPv6: its failure is ours only when the others fail too.
 */
export function evidence(seen: readonly EndpointSeen[]): readonly EndpointSeen[] {
  const others = seen.filter((one) => !onlyIpv6(one));
  return others.length === 0 ? seen : others;
}

const onlyIpv6 = ({ addresses }: Pick<EndpointSeen, 'addresses'>) =>
  addresses.length > 0 && addresses.every((address) => address.includes(':'));

/** Groups of related endpoints, joined by what they share (union-find). */
function createGroups() {
  const parents: number[] = [];
  const reached: boolean[] = [];
  const firstWith = new Map<string, number>();
  let all = 0;
  let failed = 0;
  const rootOf = (at: number): number => {
    const parent = parents[at] ?? at;
    return parent === at ? at : (parents[at] = rootOf(parent));
  };
  function join(one: number, other: number): void {
    const [a, b] = [rootOf(one), rootOf(other)];
    if (a === b) return;
    all -= 1;
    if (!reached[a] || !reached[b]) failed -= 1;
    parents[b] = a;
    reached[a] ||= reached[b] ?? false;
  }
  return {
    add({ partnerId, domain, addresses, reached: came }: EndpointSeen): void {
      const at = parents.length;
      parents.push(at);
      reached.push(came);
      all += 1;
      if (!came) failed += 1;
      const shared = [
        `partner ${partnerId}`,
        `domain ${domain}`,
        ...addresses.map((one) => `address ${one}`),
      ];
      for (const key of shared) {
        const other = firstWith.get(key);
        if (other === undefined) firstWith.set(key, at);
        else join(other, at);
      }
    },
    counts: () => ({ all, failed }),
  };
}

/** After this time failures count as they always do: such an outage is a state, and partners must see it. */
export const LONGEST_OUTAGE_MS = 86_400_000;

/** How often each endpoint is tried while our network reaches nobody. */
export const TRY_EVERY_MS = 30_000;

/**
 * Codes of errors that are this machine's, whatever others meet: too many open files, no local port, no
 * route, a local firewall, no name server. An address of IPv6 that the machine does not have is none of
 * them (outbound/connect.ts).
 */
const OF_THIS_MACHINE =
  /^E(MFILE|NFILE|ADDRNOTAVAIL|ADDRINUSE|NOBUFS|NOMEM|INVAL|PERM|ACCES|NETDOWN|CONNREFUSED)$/;
export const isOfThisMachine = (code: string): boolean => OF_THIS_MACHINE.test(code);
