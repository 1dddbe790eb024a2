import type { FastifyInstance } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError, errorBody } from '../errors';
import { requestIdOf } from './request-id';

const BODY = JSON.stringify(errorBody(new ApiError('INVALID_REQUEST', 'The request is not valid HTTP.')));

/** How long what still arrives is read after the last answer, in milliseconds: a reset would take the answer with it. */
const LINGER_MS = 1_000;

/** What Node's HTTP server keeps with a socket: the answer under way, and the request that is, or was last, read. */
type HttpSocket = Duplex & {
  readonly _httpMessage?: ServerResponse | null;
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
};

/**
 * Answers what never becomes a request of the framework's with the contract's 400: what Node's HTTP parser refuses
 * (malformed or oversized headers, a request that never ends) and CONNECT. Also keeps Node from answering on its own
 * (417 to an unknown Expect) and from dropping headers.
 */
export function answerBrokenRequests(app: FastifyInstance, newRequestId: () => string): void {
  const { server } = app;
  // Node reads 2,000 and drops the rest silently, a second Authorization among them. Their size is limited as it is.
  server.maxHeadersCount = 0;
  server.removeAllListeners('clientError');
  const broken = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    // Told of every piece that still arrives; once is enough.
    if (broken.has(socket)) return;
    broken.add(socket);
    const { _httpMessage: answer, parser } = socket as HttpSocket;
    // It was refused before its end, and has its answer.
    if (!answer && parser?.incoming?.complete === false) return end(socket);
    if (answer?.req.complete === true) return closeAfter(answer, socket);
    if (answer?.headersSent === true) return void socket.destroy();
    refuse(socket, answer ? requestIdOf(answer.req.headers, newRequestId) : newRequestId());
  });
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    // Without it a reset would end the process.
    socket.on('error', () => undefined);
    refuse(socket, requestIdOf(request.headers, newRequestId));
  });
  // Expect: anything but 100-continue is handled like a request without it, as RFC 9110 §10.1.1 allows.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}

function refuse(socket: Duplex, requestId: string): void {
  const head = [
    'HTTP/1.1 400 Bad Request',
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(BODY)}`,
    'Connection: close',
  ];
  end(socket, `${head.join('\r\n')}\r\n\r\n${BODY}`);
}

/** The request being answered is whole, and the fault lies behind it: its answer is not taken from it, and is the last. */
function closeAfter(answer: ServerResponse, socket: Duplex): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
  answer.once('finish', () => end(socket));
}

function end(socket: Duplex, lastWords = ''): void {
  socket.end(lastWords);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
