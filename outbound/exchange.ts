import type { IncomingMessage, InformationEvent } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { ConnectionPool, PooledRequestOptions } from './connection-pool';
import { DeliveryFault, faultOfOpenConnection } from './delivery-fault';

/** Bytes of an answer's status line and headers: Node's own default. */
const MAX_HEAD_BYTES = 16_384;

/**
 * Informational answers (1xx) before the final one, and the bytes of all of them. Servers send one or two; an endpoint that sends
 * them for ever would hold up the deliveries of everybody else in this process.
 */
const MAX_INFORMATIONAL = 20;
const MAX_INFORMATIONAL_BYTES = 16_384;

/** Sent with every request. Compressed answers are never unpacked, so none is asked for. */
const ALWAYS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Accept-Encoding': 'identity',
  'User-Agent': 'partner-finance-quote-service/1',
};

export interface ExchangeOptions {
  readonly pool: ConnectionPool;
  /** Opens a guarded connection, when the pool has none. */
  readonly open: () => Promise<TLSSocket>;
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** From the connection to the end of the answer's headers. */
  readonly headersMs: number;
  readonly onConnected: (address: string | null) => void;
}

/** A kept connection turned out to be closed. That is no failure of the partner's: send again on a new one. */
export class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
}

/**
 * Sends one POST and waits for the status and headers of the final answer. At most 20 informational answers (1xx) of 16 KiB
 * together are passed over. The body is the caller's to read.
 * @throws DeliveryFault; StaleConnection; the signal's reason; any other error is ours.
 */
export function exchange(options: ExchangeOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { pool, open, hostname, port, path, headers, body, headersMs, onConnected } = options;
  return new Promise((resolve, reject) => {
    const requestOptions: PooledRequestOptions = {
      method: 'POST',
      agent: pool,
      open,
      hostname,
      port,
      path,
      headers: { ...ALWAYS, ...headers, 'Content-Length': body.length },
      maxHeaderSize: MAX_HEAD_BYTES,
      insecureHTTPParser: false,
    };
    const request = httpsRequest(requestOptions);
    let timer: NodeJS.Timeout | undefined;
    let settled = false;
    const settle = (outcome: () => void) => {
      settled = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      request.socket?.off('data', count);
      outcome();
    };
    const fail = (error: Error) => {
      settle(() => reject(error));
      request.destroy();
    };
    const abort = () => fail(signal.reason as Error);

    let received = 0;
    // Called after the parser has had the bytes: while there is no final answer, all of them are heads. The parser itself
    // counts neither the heads of 1xx together nor the blanks around a value.
    const count = (bytes: Uint8Array) => {
      received += bytes.length;
      if (!settled && received > MAX_INFORMATIONAL_BYTES + MAX_HEAD_BYTES)
        fail(new DeliveryFault('protocol', 'too many bytes before an answer'));
    };
    let informational = 0;
    let informationalBytes = 0;

    signal.addEventListener('abort', abort, { once: true });
    request.once('socket', (socket) => {
      onConnected(socket.remoteAddress ?? null);
      timer = setTimeout(() => fail(new DeliveryFault('timeout', 'no answer in time')), headersMs);
      socket.on('data', count);
    });
    request.on('information', (information) => {
      // The parser goes on to the end of the bytes that it has been given, 16 KiB at most.
      if (settled) return;
      informational += 1;
      informationalBytes += headBytes(information);
      if (informational > MAX_INFORMATIONAL || informationalBytes > MAX_INFORMATIONAL_BYTES)
        fail(new DeliveryFault('protocol', 'too many informational answers'));
    });
    request.once('response', (response) => {
      // The parser lets a major version other than 1 pass.
      if (response.httpVersionMajor !== 1) return fail(new DeliveryFault('protocol', 'not HTTP/1'));
      settle(() => resolve(response));
    });
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      fail(new DeliveryFault('protocol', '101 to a request that asked for no upgrade'));
    });
    // Not `once`: after the answer's headers a broken connection is told here, too, and then means nothing.
    request.on('error', (error) => {
      const fault = faultOfOpenConnection(error);
      const stale = request.reusedSocket && fault instanceof DeliveryFault && fault.failure === 'reset';
      settle(() =>
        reject(stale ? new StaleConnection('a kept connection was closed', { cause: error }) : fault),
      );
    });
    request.end(body);
  });
}

/** Bytes of a status line and its headers; blanks around values are not among them. */
function headBytes({ statusMessage, rawHeaders }: InformationEvent): number {
  // "HTTP/1.1 103 ", the end of that line and the empty line; ": " and the end of the line for each header.
  let bytes = 17 + statusMessage.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
