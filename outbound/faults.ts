import { PROTOCOL_REASONS, type DeliveryFailure, type ProtocolReason } from '../domain/delivery-outcome';

/** The partner's failure. Inside `outbound/` it is an exception; `send` makes an outcome of it. */
export class DeliveryFault extends Error {
  override readonly name = 'DeliveryFault';

  /** Of the failure `protocol`. */
  readonly reason: ProtocolReason | undefined;

  constructor(
    readonly failure: DeliveryFailure,
    /** An error code or a name for operators, never anything that the partner sent. */
    readonly detail: string,
    { reason, ...options }: ErrorOptions & { readonly reason?: ProtocolReason } = {},
  ) {
    super(`${failure}: ${detail}`, options);
    this.reason = reason;
  }
}

/** An answer that is not HTTP/1.1 in our reading. */
export const unreadable = (reason: ProtocolReason, options: ErrorOptions & { readonly code?: string } = {}) =>
  new DeliveryFault('protocol', [options.code, PROTOCOL_REASONS[reason]].filter(Boolean).join(': '), {
    ...options,
    reason,
  });

/** What the parser's codes mean. */
const READINGS: Readonly<Record<string, ProtocolReason>> = {
  HPE_HEADER_OVERFLOW: 'headers',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'lengths',
  HPE_INVALID_CONTENT_LENGTH: 'length',
  HPE_INVALID_TRANSFER_ENCODING: 'coding',
  HPE_INVALID_HEADER_TOKEN: 'header',
  HPE_CR_EXPECTED: 'line_end',
  HPE_LF_EXPECTED: 'line_end',
  HPE_STRICT: 'line_end',
  HPE_INVALID_STATUS: 'status',
  HPE_INVALID_VERSION: 'version',
  HPE_INVALID_CONSTANT: 'version',
};

function readingOf(code: string, error: Error): ProtocolReason {
  // Content-Length and Transfer-Encoding together have a code of their own in each order.
  const { reason = '' } = error as { readonly reason?: string };
  return reason.includes('present with') ? 'lengths' : (READINGS[code] ?? 'unreadable');
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** Ends of a connection caused by the other side or the network. */
const RESETS = /^E(CONNRESET|PIPE|CONNABORTED|HOSTUNREACH|NETUNREACH)$/;

/** What an error on an open connection means. An error that is not the partner's is returned unchanged. */
export function faultOfOpenConnection(error: Error): Error {
  if (error instanceof DeliveryFault) return error;
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return unreadable(readingOf(code, error), { code, cause: error });
  if (RESETS.test(code)) return new DeliveryFault('reset', code, { cause: error });
  if (code === 'ETIMEDOUT') return new DeliveryFault('timeout', code, { cause: error });
  // With TLS 1.3 a server asks for a client certificate only after the handshake.
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_'))
    return new DeliveryFault('tls', code, { cause: error });
  return error;
}
