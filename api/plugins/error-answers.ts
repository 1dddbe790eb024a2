import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorSchema, internalErrorSchema, type AnyErrorBody } from '../../contracts/errors';
import { errorBody, NO_SUCH_ENDPOINT, toApiError } from '../errors';
import { serializer } from '../serializer';

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
