import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorSchema } from '../../contracts/errors';
import { internalErrorSchema, type AnyErrorBody } from '../../contracts/internal-errors';
import { errorBody, NO_SUCH_ENDPOINT, toApiError } from '../errors';
import { serializer } from '../serializer';
import { httpsOnly } from './https-only';

/** Whose contract the answers are of. */
const SERIALIZERS = {
  public: serializer<AnyErrorBody>(errorSchema),
  internal: serializer<AnyErrorBody>(internalErrorSchema),
};
type Contract = keyof typeof SERIALIZERS;

/** Answers every error, and every unknown path or method, in the contract's form. */
export function answerErrors(app: FastifyInstance, contract: Contract = 'public'): void {
  app.setErrorHandler((thrown, request, reply) => send(thrown, request, reply, contract));
  app.setNotFoundHandler((request, reply) => send(NO_SUCH_ENDPOINT, request, reply, contract));
  // In a hook, because the body is read before that handler runs, and a fault in it would be answered instead.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.is404) done(NO_SUCH_ENDPOINT);
    else done();
  });
}

/** Answers a request whose URL the router could not read. Hooks do not run for it, so their work is done here. */
export function notFound(_error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  void reply.header('X-Request-Id', request.id);
  httpsOnly.call(
    request.server,
    request,
    reply,
    (refusal) => void send(refusal ?? NO_SUCH_ENDPOINT, request, reply, 'public'),
  );
}

/** The same on the internal listener, which speaks plain HTTP. */
export function notFoundInternally(_error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  void reply.header('X-Request-Id', request.id);
  send(NO_SUCH_ENDPOINT, request, reply, 'internal');
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
  // read and dropped instead, for as long as a request may take (api/server-options).
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
