import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { withTimeout } from '../timing/timing';
import type { AddressGuard } from './connect';
import { codeOf, DeliveryFault } from './faults';

export interface AddressResolver {
  /**
   * Addresses of one family from the first server that has an answer: addresses, or that there are none.
   * @throws that answer, with c-ares' code (`ENOTFOUND`, `ENODATA`), or the failure of the last server
   */
  resolve(hostname: string, family: 4 | 6): Promise<string[]>;
  /** Whether any server answers a question about the root, which no partner's zone can spoil. */
  answers(withinMs: number): Promise<boolean>;
  /** The servers that are asked, such as `10.0.0.2` or `127.0.0.1:5353`. */
  servers(): readonly string[];
  /** Ends the look-ups under way. */
  cancel(): void;
}

/** Where the servers stand on Linux, macOS and the BSDs. Without it those of Node are asked. */
const RESOLV_CONF = '/etc/resolv.conf';
/** The file is read again at most this often, as a look-up needs it and when all servers have failed. */
const READ_EVERY_MS = 1_000;
/** The next server is asked too when one has not answered for so long, which is four in the 5 s of DNS. */
const NEXT_AFTER_MS = 1_000;
/** A server that failed while another answered comes after the others for this time. */
const BEHIND_MS = 30_000;
// Tries of one server within a look-up. The first is short, so that slow names would fail with fewer.
const QUERY_TIMEOUT_MS = 2_000;
const TRIES = 5;

/** Answers about the name, which another server would only repeat. All other codes are about a server. */
const OF_THE_NAME = /^E(NODATA|NOTFOUND|BADNAME)$/;
const isOfTheName = (error: Error) => OF_THE_NAME.test(codeOf(error));

/**
 * A resolver on c-ares, without the hosts file, because `dns.lookup` occupies one of Node's four threads.
 * Node's own list of servers is read once, and c-ares 1.34 (Node 20 to 24) asks no second server when one
 * answers SERVFAIL or REFUSED. So each server has a Resolver of its own here, and the order is ours.
 * `search` and `ndots` do not apply, as a partner's name must not become one of this network; `timeout`
 * and `attempts` do not, as the time limit is the delivery's.
 * @param source of the servers: a file in the form of resolv.conf, or a fixed list
 */
export function createResolver(source: string | readonly string[] = RESOLV_CONF): AddressResolver {
  const resolvers = new Map<string, Resolver>();
  const failedAtMs = new Map<string, number>();
  let listed: readonly string[] = typeof source === 'string' ? [] : source;
  let readAtMs = Number.NEGATIVE_INFINITY;

  function read(olderThanMs: number): void {
    if (typeof source !== 'string' || performance.now() - readAtMs < olderThanMs) return;
    readAtMs = performance.now();
    const found = serversIn(source);
    // A file that is missing or empty is about to be replaced, unless it never was there.
    if (found.length > 0) listed = found;
    else if (listed.length === 0) listed = new Resolver().getServers();
    for (const server of resolvers.keys()) if (!listed.includes(server)) resolvers.delete(server);
  }

  function inOrder(): readonly string[] {
    const fromMs = performance.now() - BEHIND_MS;
    const behind = (server: string) => Number((failedAtMs.get(server) ?? fromMs) > fromMs);
    return listed.toSorted((one, other) => behind(one) - behind(other));
  }

  function resolverOf(server: string): Resolver {
    const known = resolvers.get(server);
    if (known !== undefined) return known;
    const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES });
    resolver.setServers([server]);
    resolvers.set(server, resolver);
    return resolver;
  }

  /** Asks one server after the other, those that are slow beside each other. */
  function ask<T>(question: (resolver: Resolver) => Promise<T>): Promise<T> {
    read(READ_EVERY_MS);
    return new Promise((resolve, reject) => {
      const asked: string[] = [];
      let underWay = 0;
      let settled = false;
      let failure: Error = Object.assign(new Error('no name server is known'), { code: 'ECONNREFUSED' });
      let timer: NodeJS.Timeout | undefined;

      function answered(server: string, settle: () => void): void {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        for (const earlier of asked.slice(0, asked.indexOf(server)))
          failedAtMs.set(earlier, performance.now());
        failedAtMs.delete(server);
        settle();
      }
      async function put(server: string): Promise<void> {
        underWay += 1;
        try {
          const answer = await question(resolverOf(server));
          answered(server, () => resolve(answer));
        } catch (thrown) {
          const error = thrown as Error;
          if (isOfTheName(error)) return answered(server, () => reject(error));
          failure = error;
          underWay -= 1;
          next();
        }
      }
      function next(): void {
        if (settled) return;
        clearTimeout(timer);
        const unasked = () => inOrder().find((server) => !asked.includes(server));
        let server = unasked();
        if (server === undefined) {
          // The file may have changed since, and servers that are gone are why somebody changes it.
          read(underWay === 0 ? 0 : READ_EVERY_MS);
          server = unasked();
        }
        if (server === undefined && underWay === 0) {
          settled = true;
          return reject(failure);
        }
        timer = setTimeout(next, NEXT_AFTER_MS).unref();
        if (server === undefined) return;
        asked.push(server);
        void put(server);
      }
      next();
    });
  }

  return {
    resolve: (hostname, family) =>
      ask((resolver) => (family === 4 ? resolver.resolve4(hostname) : resolver.resolve6(hostname))),
    answers: (withinMs) =>
      withTimeout(
        ask((resolver) => resolver.resolveNs('.')),
        withinMs,
        'the name servers',
      ).then(() => true, isOfTheName),
    servers() {
      read(READ_EVERY_MS);
      return listed;
    },
    cancel() {
      for (const resolver of resolvers.values()) resolver.cancel();
    },
  };
}

/** Servers of a file such as resolv.conf, in its order; none when it cannot be read. */
function serversIn(file: string): string[] {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const found = [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(([, address = '']) => address);
  return [...new Set(found)].filter(isServer);
}

/** As c-ares does, this accepts a port too: `127.0.0.1:5353`, `[::1]:5353`. */
function isServer(text: string): boolean {
  try {
    new Resolver().setServers([text]);
    return true;
  } catch {
    return false;
  }
}

/** Longest wait for the second address family once the first has answered, as both ask the same servers. */
const OTHER_FAMILY_MS = 1_000;

interface ResolveDeps {
  readonly resolver: AddressResolver;
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  readonly isAllowed: AddressGuard;
  readonly dnsMs: number;
}

/**
 * A name's addresses, IPv4 first. One blocked address refuses all, as it is a mistake or an attack.
 * @throws DeliveryFault
 */
export async function resolveTarget(
  hostname: string,
  { resolver, hosts, isAllowed, dnsMs }: ResolveDeps,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const known = isIP(hostname) ? [hostname] : hosts.get(hostname);
  const late = () => new DeliveryFault('dns', NO_ANSWER);
  const addresses = known ?? (await withTimeout(askBoth(hostname, resolver), dnsMs, late, signal));
  const blocked = addresses.find((address) => !isAllowed(address));
  if (blocked !== undefined) throw new DeliveryFault('blocked_address', `${blocked} is not a public address`);
  return addresses;
}

async function askBoth(hostname: string, resolver: AddressResolver): Promise<readonly string[]> {
  const found: string[] = [];
  const errors: Error[] = [];
  const collect = (family: 4 | 6) =>
    resolver.resolve(hostname, family).then(
      (addresses) => void found.push(...addresses),
      (error: Error) => void errors.push(error),
    );
  const families = [collect(4), collect(6)];
  await Promise.race(families);
  const both = Promise.all(families);
  if (found.length === 0) await both;
  else await withTimeout(both, OTHER_FAMILY_MS, 'the other family').catch(() => undefined);
  if (found.length === 0) throw noAddress(errors);
  return found.toSorted((a, b) => isIP(a) - isIP(b));
}

const NO_ANSWER = 'no answer in time';
// What a server answers or leaves unanswered. Any other code, such as no DNS server reachable, is our own fault.
const OF_AN_ANSWER = /^E(NODATA|NOTFOUND|SERVFAIL|REFUSED|NOTIMP|FORMERR|BADRESP|BADNAME|TIMEOUT)$/;

function noAddress(errors: readonly Error[]): Error {
  const ours = errors.find((error) => !OF_AN_ANSWER.test(codeOf(error)));
  if (ours !== undefined) return ours;
  const cause = errors.find((error) => codeOf(error) !== 'ENODATA') ?? errors[0];
  // For an alias whose target has no address c-ares reports no error and no address.
  return new DeliveryFault('dns', cause === undefined ? 'ENODATA' : codeOf(cause), { cause });
}

/**
 * Why a name was not resolved: it has no address, its zone is broken, or our own name servers are.
 * @param detail of the DeliveryFault, or the code of an error of our own
 */
export async function explainNames(
  detail: string,
  resolver: AddressResolver,
  withinMs: number,
): Promise<string> {
  if (OF_THE_NAME.test(detail)) return `The URL's host does not resolve (${detail}).`;
  const servers = resolver.servers().join(', ');
  const said =
    detail === NO_ANSWER || detail === 'ETIMEOUT' ? 'did not answer' : `answered ${detail.slice(1)}`;
  if (await resolver.answers(withinMs))
    return `The URL's host does not resolve: the name servers (${servers}) ${said} for it, and answer for other names. The zone of the host is broken.`;
  const why = detail === 'ECONNREFUSED' ? 'cannot be reached' : said;
  return `The URL was not checked: the name servers of this machine (${servers}) ${why}, for other names too. Repair them or /etc/resolv.conf.`;
}
