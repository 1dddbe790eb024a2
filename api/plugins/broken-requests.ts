import type { FastifyInstance } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError, errorBody } from '../errors';

const BODY = JSON.stringify(errorBody(new ApiError('INVALID_REQUEST', 'The request is not valid HTTP.')));

/**
 * Answers what Node's HTTP parser refuses (malformed or oversized headers, a request that never ends) with the
 * contract's 400, and keeps Node from answering on its own (417 to an unknown Expect).
 */
export function answerBrokenRequests(app: FastifyInstance, newRequestId: () => string): void {
  const { server } = app;
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answering = (socket as Duplex & { _httpMessage?: ServerResponse })._httpMessage;
    if (error.code === 'ECONNRESET' || !socket.writable || answering?.headersSent === true) {
      socket.destroy();
      return;
    }
    const head = [
      'HTTP/1.1 400 Bad Request',
      `X-Request-Id: ${newRequestId()}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(BODY)}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${BODY}`);
    // What still arrives is not read for ever.
    setTimeout(() => socket.destroy(), 1_000).unref();
  });
  // Expect: anything but 100-continue is handled like a request without it, as RFC 9110 §10.1.1 allows.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}
