import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import fastJson, { type Schema } from 'fast-json-stringify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorSchema, internalErrorSchema, type AnyErrorBody } from '../contracts/errors';
import { ANSWERED_AMOUNT } from '../contracts/fields';
import { FINANCE_URL_PATTERN } from '../contracts/quote-request';
import { ApiError, errorBody, NO_SUCH_ENDPOINT, toApiError } from './errors';
import { REQUEST_TIMEOUT_MS, SECURITY_HEADERS } from './listener';

/** What they allow needs no escaping in JSON: no quote, no backslash, no control character. */
const PLAIN: readonly unknown[] = [ANSWERED_AMOUNT, FINANCE_URL_PATTERN];

/**
 * Compiles a response schema into a serializer: an undeclared field cannot leave, and a response costs no validation
 * pass. Fields are written in the order the schema declares them.
 */
export function serializer<T>(schema: z.ZodType<T>): (value: T) => string {
  const json = z.toJSONSchema(schema, {
    target: 'draft-7',
    io: 'output',
    override: ({ jsonSchema }) => {
      // Looking for what to escape is a third of the work of an answer.
      if (PLAIN.includes(jsonSchema.pattern)) jsonSchema.format = 'unsafe';
    },
  });
  // Where a schema has alternatives, a validator chooses between them, and it must know the format.
  return fastJson(json as Schema, { ajv: { formats: { unsafe: true } } });
}

/** Compiles a response schema into what answers a call that succeeded. */
export function answerer<Data>(schema: z.ZodType<{ success: true; data: Data }>) {
  const serialize = serializer(schema);
  return (reply: FastifyReply, data: Data, status: 200 | 202 = 200): FastifyReply =>
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .send(serialize({ success: true, data }));
}

/** Whose contract the answers are of. */
const SERIALIZERS = {
  public: serializer<AnyErrorBody>(errorSchema),
  internal: serializer<AnyErrorBody>(internalErrorSchema),
};
type Contract = keyof typeof SERIALIZERS;

/** Counts a call that is refused before its key was accepted, by the code of the refusal. @throws ApiError 429 above a limit. */
type CountRefused = (code: string, request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Answers every error, and every unknown path or method, in the contract's form.
 * @param count null: nothing is counted.
 */
export function answerErrors(
  app: FastifyInstance,
  contract: Contract = 'public',
  count: CountRefused | null = null,
): void {
  app.setErrorHandler((thrown, request, reply) => answer(thrown, request, reply, contract, count));
  app.setNotFoundHandler((request, reply) => answer(NO_SUCH_ENDPOINT, request, reply, contract, count));
  // In a hook, because the body is read before that handler runs, and a fault in it would be answered instead.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) done(NO_SUCH_ENDPOINT);
    else done();
  });
}

function answer(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  contract: Contract,
  count: CountRefused | null,
): FastifyReply | Promise<FastifyReply> {
  if (count === null || ('caller' in request && request.caller !== undefined))
    return send(thrown, request, reply, contract);
  const { statusCode, code } = toApiError(thrown);
  if (statusCode >= 500 || code === 'RATE_LIMIT_EXCEEDED') return send(thrown, request, reply, contract);
  return count(code, request, reply).then(
    () => send(thrown, request, reply, contract),
    (tooMany: unknown) => send(tooMany, request, reply, contract),
  );
}

function send(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  contract: Contract,
): FastifyReply {
  const error = toApiError(thrown);
  if (error.code === 'INTERNAL_SERVER_ERROR')
    request.log.error({ requestId: request.id, err: thrown }, 'request failed');
  // The framework would close under a client that still sends, and the reset would take this answer with it. What comes is
  // read and dropped instead, for as long as a request may take (api/listener.ts).
  if ((thrown as { code?: unknown } | null)?.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    void reply.removeHeader('Connection');
    request.raw.resume();
  }
  if (error.code === 'UNAUTHENTICATED') void reply.header('WWW-Authenticate', 'Bearer');
  return reply
    .code(error.statusCode)
    .header('Content-Type', 'application/json; charset=utf-8')
    .send(SERIALIZERS[contract](errorBody(error)));
}

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
