import type { DeliveryFailure } from '../domain/delivery-outcome';

/** A failure that is the partner's. Inside `outbound/` it travels as an exception; `send` turns it into an outcome. */
export class DeliveryFault extends Error {
  override readonly name = 'DeliveryFault';

  constructor(
    readonly failure: DeliveryFailure,
    /** A few words for people: an error code or a name, never anything that the partner sent. */
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(`${failure}: ${detail}`, options);
  }
}

/** The code of a system, DNS, TLS or parser error; empty when it has none. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** Ends of a connection that the other side, or something on the way to it, brought about. */
const RESETS = /^E(CONNRESET|PIPE|CONNABORTED|HOSTUNREACH|NETUNREACH)$/;

/**
 * What an error on an open connection means. An error that is not the partner's (too many open files, a header that
 * cannot be sent, a cancellation) comes back as it is.
 */
export function faultOfOpenConnection(error: Error): Error {
  if (error instanceof DeliveryFault) return error;
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return new DeliveryFault('protocol', code, { cause: error });
  if (RESETS.test(code)) return new DeliveryFault('reset', code, { cause: error });
  if (code === 'ETIMEDOUT') return new DeliveryFault('timeout', code, { cause: error });
  // With TLS 1.3 a server asks for a client certificate only after the handshake.
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_'))
    return new DeliveryFault('tls', code, { cause: error });
  return error;
}
