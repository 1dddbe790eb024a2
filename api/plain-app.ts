import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { limitConnections } from './limits/connection-limit';
import { markAnswers, requestIdOf } from './plugins/answer-headers';
import { answerBrokenRequests } from './plugins/broken-requests';
import { answerErrors, notFound } from './plugins/error-answers';
import { httpsOnly } from './plugins/https-only';
import { listenerOptions } from './server-options';

/** Builds a plain-HTTP listener that answers nothing but "HTTPS is required": the key of a request is not looked at. */
export function buildPlainApp(deps: {
  logger: FastifyBaseLogger;
  newRequestId: () => string;
  onConnectionClosed: () => void;
}): FastifyInstance {
  const app = Fastify({
    ...listenerOptions(null),
    loggerInstance: deps.logger,
    genReqId: (request) => requestIdOf(request.headers, deps.newRequestId),
    frameworkErrors: notFound(null),
    forceCloseConnections: 'idle',
  });
  limitConnections(app.server, deps.onConnectionClosed);
  answerBrokenRequests(app, deps.newRequestId);
  markAnswers(app);
  app.addHook('onRequest', (_request, reply, done) => {
    void reply.header('Connection', 'close');
    done();
  });
  app.addHook('onRequest', httpsOnly);
  answerErrors(app);
  return app;
}
