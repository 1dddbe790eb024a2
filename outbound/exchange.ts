import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { ConnectionPool, PooledRequestOptions } from './connection-pool';
import { DeliveryFault, faultOfOpenConnection } from './delivery-fault';

/** The bytes of an answer's status line and headers. Node's own default, against a change of it by an option. */
const MAX_HEAD_BYTES = 16_384;

/** Sent with every request. Compressed answers are never unpacked, so none is asked for. */
const ALWAYS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Accept-Encoding': 'identity',
  'User-Agent': 'Partner-Finance-Quote-Service/1 (webhooks)',
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
  /** Told which address the request goes to. */
  readonly onConnected: (address: string | null) => void;
}

/** A kept connection turned out to be closed. That is no failure of the partner's: send again on a new one. */
export class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
}

/**
 * Sends one POST and waits for the status and headers of the final answer; 1xx are passed over. The body is the
 * caller's to read.
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
    const settle = (outcome: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      outcome();
    };
    const fail = (error: Error) => {
      settle(() => reject(error));
      request.destroy();
    };
    const abort = () => fail(signal.reason as Error);

    signal.addEventListener('abort', abort, { once: true });
    request.once('socket', (socket) => {
      onConnected(socket.remoteAddress ?? null);
      timer = setTimeout(() => fail(new DeliveryFault('timeout', 'no answer in time')), headersMs);
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
