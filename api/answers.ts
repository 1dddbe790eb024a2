import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import fastJson, { type Schema } from 'fast-json-stringify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorSchema, internalErrorSchema, type AnyErrorBody } from '../contracts/errors';
import { ANSWERED_AMOUNT } from '../contracts/fields';
import { FINANCE_URL_PATTERN } from '../contracts/quote-request';
import { refused, toApiError, type ApiError } from './errors';
import { newRequestId } from '../runtime/ids';
import { REQUEST_TIMEOUT_MS, SECURITY_HEADERS } from './listener';

// Texts of these patterns have no character that JSON escapes.
const PLAIN: readonly unknown[] = [ANSWERED_AMOUNT, FINANCE_URL_PATTERN];

/** Compiles a response schema into a serializer, so that no undeclared field can leave. */
export function serializer<T>(schema: z.ZodType<T>): (value: T) => string {
  const json = z.toJSONSchema(schema, {
    target: 'draft-7',
    io: 'output',
    override: ({ jsonSchema }) => {
      // Searching texts for characters to escape would be a third of the work of an answer.
      if (PLAIN.includes(jsonSchema.pattern)) jsonSchema.format = 'unsafe';
    },
  });
  // A validator chooses between the alternatives of a schema, and has to know the format.
  return fastJson(json as Schema, { ajv: { formats: { unsafe: true } } });
}

/** As every time is answered: UTC with milliseconds. */
export const toTimestamp = (ms: number) => new Date(ms).toISOString();

export function answerer<Data>(schema: z.ZodType<{ success: true; data: Data }>) {
  const serialize = serializer(schema);
  return (reply: FastifyReply, data: Data, status: 200 | 201 | 202 = 200): FastifyReply =>
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .send(serialize({ success: true, data }));
}

const SERIALIZERS = {
  public: serializer<AnyErrorBody>(errorSchema),
  internal: serializer<AnyErrorBody>(internalErrorSchema),
};

/**
 * Counts a call that is refused before its key was accepted, by the code of the refusal.
 * @throws ApiError 429 above a limit
 */
type CountRefused = (code: string, request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Answers every error, and every unknown path or method, in the form of a contract.
 * @param count absent: nothing is counted
 */
export function answerErrors(app: FastifyInstance, contract: keyof typeof SERIALIZERS, count?: CountRefused) {
  const serialize = SERIALIZERS[contract];

  async function answer(thrown: unknown, request: FastifyRequest, reply: FastifyReply) {
    const error = toApiError(thrown);
    const counted = error.statusCode >= 500 || error.code === 'RATE_LIMIT_EXCEEDED' || hasCaller(request);
    if (count === undefined || counted) return send(thrown, request, reply);
    const tooMany = await count(error.code, request, reply).catch((reason: unknown) => reason);
    return send(tooMany ?? thrown, request, reply);
  }
  function send(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const error = toApiError(thrown);
    if (error.code === 'INTERNAL_SERVER_ERROR')
      request.log.error({ requestId: request.id, err: thrown }, 'request failed');
    // Fastify would close the connection while the client still sends, and a reset could destroy this
    // answer. The rest of the body is read and dropped instead, for as long as a request may take
    // (api/listener.ts).
    if ((thrown as { code?: unknown } | null)?.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
      void reply.removeHeader('Connection');
      request.raw.resume();
    }
    if (error.code === 'UNAUTHENTICATED') void reply.header('WWW-Authenticate', 'Bearer');
    // Without it, too many calls were under way at once (api/queries.ts).
    if (error.code === 'RATE_LIMIT_EXCEEDED' && !reply.hasHeader('Retry-After'))
      void reply.header('Retry-After', '1');
    return reply
      .code(error.statusCode)
      .header('Content-Type', 'application/json; charset=utf-8')
      .send(serialize(error.body));
  }
  app.setErrorHandler(answer);
  // HEAD has the headers that GET would have.
  const noSuchEndpoint = ({ method }: FastifyRequest) =>
    refused('NOT_FOUND', method === 'HEAD' ? 'GET' : method);
  app.setNotFoundHandler((request, reply) => answer(noSuchEndpoint(request), request, reply));
  // A hook, because Fastify reads the body before it calls that handler, and would answer its fault.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) done(noSuchEndpoint(request));
    else done();
  });
}

const hasCaller = (request: FastifyRequest) => 'caller' in request && request.caller !== undefined;

const NOT_HTTP = refused('INVALID_REQUEST', 'The request is not valid HTTP.');
const LINE_BREAK = refused(
  'INVALID_REQUEST',
  'The request is not valid HTTP: a header has a line break in it, such as one at the end of your key.',
);
const LONG_HEAD = refused('INVALID_REQUEST', 'The request line and headers are larger than 16 KiB.');
const TOO_SLOW = refused(
  'INVALID_REQUEST',
  `The request did not arrive whole within ${REQUEST_TIMEOUT_MS / 1_000} seconds.`,
);

/** What an error of Node's server means. */
function faultOf({ code, reason }: NodeJS.ErrnoException & { readonly reason?: string }): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TOO_SLOW;
  if (code === 'HPE_HEADER_OVERFLOW') return LONG_HEAD;
  return reason?.endsWith('after header value') ? LINE_BREAK : NOT_HTTP;
}

// How long a connection is read after its last answer, in ms: a reset could destroy the answer.
const LINGER_MS = 1_000;

/** Fields that Node's HTTP server adds to a socket: the answer under way, and the last request. */
type HttpSocket = Socket & {
  readonly _httpMessage?: ServerResponse | null;
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
};

/**
 * Answers in the contract's form what Node's HTTP server does not pass to Fastify: CONNECT, and
 * requests that its parser refuses (malformed or oversized headers, wrong framing of a body, a request
 * that never ends).
 * @param onUnreadable called for each request that Fastify never got
 */
export function answerBrokenRequests(
  app: FastifyInstance,
  onUnreadable: (requestId: string) => void = () => undefined,
): void {
  const { server } = app;
  // By default Node drops all headers after the 2,000th, perhaps a second Authorization.
  server.maxHeadersCount = 0;
  const faults = new WeakMap<IncomingMessage, ApiError>();
  const broken = new WeakSet<Socket>();
  server.removeAllListeners('clientError');
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    // The event repeats for every chunk that still arrives.
    if (broken.has(socket)) return;
    broken.add(socket);
    // Clients open some ahead, or for a call that another connection has taken: an answer would belong to none, or to the next.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return end(socket);
    const fault = faultOf(error);
    const { _httpMessage: answer, parser } = socket as HttpSocket;
    if (answer) {
      closeAfter(answer, socket);
      // A complete request keeps its own answer, as the fault is in the bytes after it.
      if (!answer.req.complete && !answer.headersSent) {
        // A client that vanished in the middle of its body never reads the refusal.
        answer.once('prefinish', () => destroyLater(socket));
        failBody(answer.req, fault);
      }
    } else if (parser?.incoming?.complete === false) {
      // The request has been refused and answered before its end.
      end(socket);
    } else {
      const requestId = newRequestId();
      refuse(socket, fault, requestId);
      onUnreadable(requestId);
    }
  });

  /**
   * Fails the reading of the body, now or in the hook below, so that Fastify answers after key and rate
   * limit.
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
  // As RFC 9110 §10.1.1 allows, any Expect but 100-continue is ignored.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
}

/** Answers a request whose head could not be read, so that Fastify never got it. */
function refuse(socket: Socket, fault: ApiError, requestId: string): void {
  const body = JSON.stringify(fault.body);
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
  // Node calls this after an answer with `close`. Its own method would not read what still arrives.
  socket.destroySoon = () => end(socket);
  answer.once('finish', () => end(socket));
}

function end(socket: Socket, answer = ''): void {
  if (!socket.writableEnded) socket.end(answer);
  destroyLater(socket);
}

const destroyLater = (socket: Socket) => setTimeout(() => socket.destroy(), LINGER_MS).unref();
