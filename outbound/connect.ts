import { connect as connectTcp, isIPv6, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';
import type { AddressGuard } from './addresses';
import { codeOf, DeliveryFault, faultOfOpenConnection } from './delivery-fault';
import { withTimeout } from '../timing/timeout';

/** Tried of one name, each with an equal share of the time that is left. */
const MOST_ADDRESSES = 4;

interface OpenOptions {
  /** What the certificate must be for. */
  readonly hostname: string;
  readonly port: number;
  /** Checked addresses; only these are connected to. At least one. */
  readonly addresses: readonly string[];
  readonly isAllowed: AddressGuard;
  readonly secureContext: SecureContext;
  /** For TCP and TLS together. */
  readonly connectMs: number;
}

/**
 * Opens a connection to one of the addresses, in their order, and checks the certificate for the host name.
 * @throws DeliveryFault `connect`, `tls`, `reset` or `blocked_address`; any other error is ours.
 */
export async function openConnection(options: OpenOptions, signal: AbortSignal): Promise<TLSSocket> {
  const endsAt = performance.now() + options.connectMs;
  const tcp = await openTcp(options, endsAt, signal);
  const tls = connectTls({
    socket: tcp,
    servername: options.hostname,
    secureContext: options.secureContext,
    ALPNProtocols: ['http/1.1'],
    // The default, unless the environment says otherwise; it shall have no say.
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

async function openTcp(options: OpenOptions, endsAt: number, signal: AbortSignal): Promise<Socket> {
  const addresses = options.addresses.slice(0, MOST_ADDRESSES);
  let fault: unknown;
  for (const [index, address] of addresses.entries()) {
    const share = (endsAt - performance.now()) / (addresses.length - index);
    try {
      return await connectOne(address, share, options, signal);
    } catch (error) {
      fault = error;
      // That is no matter of which address.
      if (signal.aborted || (error instanceof DeliveryFault && error.failure === 'blocked_address')) break;
    }
  }
  throw fault;
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
    // Once more on the socket itself: whatever went on in between, nothing is written to another address.
    if (!isAllowed(remoteAddress)) throw new DeliveryFault('blocked_address', 'connected to another address');
    return socket;
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? error : faultOfConnecting(error as Error, address);
  }
}

/** Resolves at the event. Errors are heard for the life of the socket, so that a late one ends no process. */
function event(socket: Socket, name: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(name, resolve);
    socket.on('error', reject);
    socket.once('close', () => reject(new DeliveryFault('reset', 'closed')));
  });
}

/** Others are ours: too many open files, a firewall that forbids it. */
const UNREACHABLE = /^E(CONNREFUSED|CONNRESET|CONNABORTED|HOSTUNREACH|HOSTDOWN|NETUNREACH|TIMEDOUT)$/;
/** This machine has no IPv6: for a name that has nothing else, no more than an unreachable network. */
const NO_IPV6 = /^E(ADDRNOTAVAIL|AFNOSUPPORT)$/;

function faultOfConnecting(error: Error, address: string): Error {
  if (error instanceof DeliveryFault) return error;
  const code = codeOf(error);
  const unreachable = UNREACHABLE.test(code) || (isIPv6(address) && NO_IPV6.test(code));
  return unreachable ? new DeliveryFault('connect', code, { cause: error }) : error;
}

/** In a handshake, all that does not end the connection is about certificates and versions. */
function faultOfHandshake(error: Error): Error {
  const known = faultOfOpenConnection(error);
  return known instanceof DeliveryFault ? known : new DeliveryFault('tls', codeOf(error), { cause: error });
}
