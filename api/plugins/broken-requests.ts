import type { FastifyInstance } from 'fastify';
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, errorBody } from '../errors';
import { REQUEST_TIMEOUT_MS } from '../server-options';
import { SECURITY_HEADERS } from './answer-headers';

const NOT_HTTP = new ApiError('INVALID_REQUEST', 'The request is not valid HTTP.');
const TOO_SLOW = new ApiError(
  'INVALID_REQUEST',
  `The request did not arrive whole within ${REQUEST_TIMEOUT_MS / 1_000} seconds.`,
);

/** How long a connection is still read after its last answer, in milliseconds: a reset could take the answer with it. */
const LINGER_MS = 1_000;

/** What Node's HTTP server keeps with a socket: the answer under way, and the request that is, or was last, read. */
type HttpSocket = Socket & {
  readonly _httpMessage?: ServerResponse | null;
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
};

/**
 * Answers in the contract's form what Node's HTTP server does not hand to the framework: requests that its parser
 * refuses (malformed or oversized headers, a body of wrong framing, a request that never ends) and CONNECT.
 * @param onUnreadable called for each request that the framework never saw.
 */
export function answerBrokenRequests(
  app: FastifyInstance,
  newRequestId: () => string,
  onUnreadable: (requestId: string) => void = () => undefined,
): void {
  const { server } = app;
  // Node reads 2,000 and drops the rest silently, a second Authorization among them. Their size is limited as it is.
  server.maxHeadersCount = 0;
  const faults = new WeakMap<IncomingMessage, ApiError>();
  const broken = new WeakSet<Socket>();
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    // The event comes with every piece that still arrives.
    if (broken.has(socket)) return;
    broken.add(socket);
    const fault = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? TOO_SLOW : NOT_HTTP;
    const { _httpMessage: answer, parser } = socket as HttpSocket;
    if (answer) {
      closeAfter(answer, socket);
      // A request that is whole keeps its own answer, however slowly it is taken: the fault lies behind it.
      if (!answer.req.complete && !answer.headersSent) {
        // A client that vanished in the middle of its body never takes the refusal.
        answer.once('prefinish', () => destroyLater(socket));
        failBody(answer.req, fault);
      }
    } else if (parser?.incoming?.complete === false) {
      // It was refused before its end, and has its answer.
      end(socket);
    } else {
      const requestId = newRequestId();
      refuse(socket, fault, requestId);
      onUnreadable(requestId);
    }
  });

  /**
   * Fails the reading of the body, so that the framework answers: the key and the rate limit come first, and their headers
   * are on the answer. When the body is not read yet, the hook below fails it.
   */
  function failBody(request: IncomingMessage, fault: ApiError): void {
    faults.set(request, fault);
    if (request.listenerCount('error') > 0) request.emit('error', fault);
  }
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const fault = faults.get(request.raw);
    if (fault === undefined) done(null, payload);
    else done(fault);
  });

  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    // Without a listener a reset would end the process.
    socket.on('error', () => undefined);
    const answer = new ServerResponse(request);
    answer.assignSocket(socket);
    closeAfter(answer, socket);
    server.emit('request', request, answer);
  });
  // Expect: anything but 100-continue is handled like a request without it, as RFC 9110 §10.1.1 allows.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}

/** Answers a request whose head could not be read, so that the framework never saw it. */
function refuse(socket: Socket, fault: ApiError, requestId: string): void {
  const body = JSON.stringify(errorBody(fault));
  const head = [
    'HTTP/1.1 400 Bad Request',
    ...Object.entries(SECURITY_HEADERS).map((header) => header.join(': ')),
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  end(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
}

function closeAfter(answer: ServerResponse, socket: Socket): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
  // Node calls it after an answer that says `close`. Its own destroys the socket without reading what still arrives.
  socket.destroySoon = () => end(socket);
  answer.once('finish', () => end(socket));
}

function end(socket: Socket, lastWords = ''): void {
  if (!socket.writableEnded) socket.end(lastWords);
  destroyLater(socket);
}

const destroyLater = (socket: Socket) => setTimeout(() => socket.destroy(), LINGER_MS).unref();
