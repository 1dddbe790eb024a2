import * as ipaddr from 'ipaddr.js';
import { connect as connectTcp, isIP, isIPv6, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';
import { withTimeout } from '../timing/timing';
import { codeOf, DeliveryFault, faultOfOpenConnection } from './faults';

export type AddressGuard = (address: string) => boolean;

/** Public by its number but private in use: the metadata service of Azure hosts. */
const AZURE_METADATA = ipaddr.parseCIDR('168.63.129.16/32');
// IPv6 allocated for the Internet. The upper half of 2000::/3, with 6bone's 3ffe::/16, is not.
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/4');
/** In a network of IPv6 alone, name servers give a host with IPv4 such an address, which ends with the IPv4 one (DNS64, RFC 6052). */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');

/** Whether a text is a public address: in no special-purpose range of IANA, and no IPv4 written as IPv6, except by NAT64. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const given = ipaddr.parse(address);
  const parsed = matches(given, NAT64) ? new ipaddr.IPv4(given.toByteArray().slice(12)) : given;
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' ? !matches(parsed, AZURE_METADATA) : matches(parsed, GLOBAL_IPV6);
}

/**
 * Allows public addresses and the addresses of these CIDRs.
 * @throws for a malformed CIDR
 */
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
  // The library would accept `10/8`.
  if (isIP(text.split('/', 1)[0] ?? '') === 0 || !ipaddr.isValidCIDR(text))
    throw new Error(`not a CIDR such as 127.0.0.0/8: ${text}`);
  return ipaddr.parseCIDR(text);
}

function matches(address: Parsed, cidr: Cidr): boolean {
  return address.kind() === cidr[0].kind() && address.match(cidr);
}

/** Most addresses tried for one name. */
const MOST_ADDRESSES = 8;
/** The next address is tried after this time, or as soon as an earlier one fails (RFC 8305, 5). */
const NEXT_ADDRESS_MS = 250;

interface OpenOptions {
  readonly hostname: string;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly isAllowed: AddressGuard;
  readonly secureContext: SecureContext;
  readonly connectMs: number;
}

/**
 * Connects to the first address that answers, and checks the certificate.
 * @throws DeliveryFault `connect`, `tls`, `reset` or `blocked_address`, and our own faults
 */
export async function openConnection(options: OpenOptions, signal: AbortSignal): Promise<TLSSocket> {
  const endsAt = performance.now() + options.connectMs;
  const tcp = await openTcp(options, endsAt, signal);
  const tls = connectTls({
    socket: tcp,
    servername: options.hostname,
    secureContext: options.secureContext,
    ALPNProtocols: ['http/1.1'],
    // This is the default. It is stated so that NODE_TLS_REJECT_UNAUTHORIZED cannot change it.
    rejectUnauthorized: true,
  });
  const late = () => new DeliveryFault('connect', 'the TLS handshake took too long');
  try {
    await withTimeout(event(tls, 'secureConnect'), endsAt - performance.now(), late, signal);
    return tls;
  } catch (error) {
    tls.destroy();
    tcp.destroy();
    throw signal.aborted ? error : faultOfHandshake(error as Error);
  }
}

/**
 * Tries the addresses, IPv6 and IPv4 in turn. Earlier tries go on beside later ones. The first connection
 * that passes the check of its address wins, and the others are closed.
 */
function openTcp(options: OpenOptions, endsAt: number, signal: AbortSignal): Promise<Socket> {
  const waiting = inTurn(options.addresses).slice(0, MOST_ADDRESSES);
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const failed: { readonly address: string; readonly fault: unknown }[] = [];
  let running = 0;
  let timer: NodeJS.Timeout;
  return new Promise((resolve, reject) => {
    const end = (outcome: () => void) => {
      clearTimeout(timer);
      outcome();
      over.abort();
    };
    const tryNext = () => {
      clearTimeout(timer);
      const leftMs = endsAt - performance.now();
      const address = leftMs > 0 ? waiting.shift() : undefined;
      if (address === undefined) {
        if (running === 0) end(() => reject(faultOfAll(failed)));
        return;
      }
      running += 1;
      timer = setTimeout(tryNext, NEXT_ADDRESS_MS);
      connectOne(address, leftMs, options, stop).then(
        (socket) => {
          if (over.signal.aborted) socket.destroy();
          else end(() => resolve(socket));
        },
        (fault: unknown) => {
          running -= 1;
          failed.push({ address, fault });
          if (over.signal.aborted) return;
          // Another address would not help.
          const blocked = fault instanceof DeliveryFault && fault.failure === 'blocked_address';
          if (signal.aborted || blocked) end(() => reject(fault));
          else tryNext();
        },
      );
    };
    tryNext();
  });
}

/** IPv6 first, then in turn (RFC 8305, 4). A machine without IPv6 is told so at once. */
function inTurn(addresses: readonly string[]): string[] {
  const [six, four] = [addresses.filter(isIPv6), addresses.filter((address) => !isIPv6(address))];
  const longer = six.length > four.length ? six : four;
  return longer.flatMap((_, at) => [six[at], four[at]].filter((address) => address !== undefined));
}

/** A fault of ours counts before the partner's, and IPv4 before IPv6, which many networks do not have. */
function faultOfAll(failed: readonly { readonly address: string; readonly fault: unknown }[]): unknown {
  const ours = failed.find(({ fault }) => !(fault instanceof DeliveryFault));
  return (ours ?? failed.findLast(({ address }) => !isIPv6(address)) ?? failed.at(-1))?.fault;
}

async function connectOne(
  address: string,
  ms: number,
  { port, isAllowed }: OpenOptions,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connectTcp({ host: address, port, noDelay: true });
  const late = () => new DeliveryFault('connect', 'no connection in time');
  try {
    await withTimeout(event(socket, 'connect'), ms, late, signal);
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) throw new DeliveryFault('reset', 'closed at once');
    // The socket itself is checked again, so that nothing is ever written to another address.
    if (!isAllowed(remoteAddress)) throw new DeliveryFault('blocked_address', 'connected to another address');
    return socket;
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? error : faultOfConnecting(error as Error, address);
  }
}

/**
 * Resolves at the event. The error listener stays: an unhandled late error would end the process, and after an alert, such as that of a
 * server that wants a client certificate with TLS 1.3, Node leaves the socket open.
 */
function event(socket: Socket, name: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(name, resolve);
    socket.on('error', (error) => {
      socket.destroy(error);
      reject(error);
    });
    socket.once('close', () => reject(new DeliveryFault('reset', 'closed')));
  });
}

/** These are the partner's faults. Others are ours, such as too many open files or a local firewall. */
const UNREACHABLE = /^E(CONNREFUSED|CONNRESET|CONNABORTED|HOSTUNREACH|HOSTDOWN|NETUNREACH|TIMEDOUT)$/;
/** This machine has no IPv6. For a name with only IPv6 addresses that equals an unreachable network. */
const NO_IPV6 = /^E(ADDRNOTAVAIL|AFNOSUPPORT)$/;

function faultOfConnecting(error: Error, address: string): Error {
  if (error instanceof DeliveryFault) return error;
  const code = codeOf(error);
  const unreachable = UNREACHABLE.test(code) || (isIPv6(address) && NO_IPV6.test(code));
  return unreachable ? new DeliveryFault('connect', code, { cause: error }) : error;
}

/** A handshake's error other than the end of the connection is about certificates or versions. */
function faultOfHandshake(error: Error): Error {
  const known = faultOfOpenConnection(error);
  return known instanceof DeliveryFault ? known : new DeliveryFault('tls', codeOf(error), { cause: error });
}
