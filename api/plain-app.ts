import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { limitConnections } from './limits/connection-limit';
import { markAnswer } from './plugins/answer-headers';
import { answerBrokenRequests } from './plugins/broken-requests';
import { answerErrors, notFound } from './plugins/error-answers';
import { httpsOnly } from './plugins/https-only';
import { requestIdOf } from './plugins/request-id';
import { listenerOptions, quietLogs } from './server-options';

/** Builds a plain-HTTP listener that answers nothing but "HTTPS is required": the key of a request is not looked at. */
export function buildPlainApp(deps: {
  logger: FastifyBaseLogger;
  newRequestId: () => string;
  /** A connection was closed because its address had too many. */
  onConnectionClosed: () => void;
}): FastifyInstance {
  const app = Fastify({
    ...listenerOptions(null),
    loggerInstance: deps.logger,
    logController: quietLogs(),
    genReqId: (request) => requestIdOf(request.headers, deps.newRequestId),
    frameworkErrors: notFound(null),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  });
  limitConnections(app.server, deps.onConnectionClosed);
  answerBrokenRequests(app, deps.newRequestId);
  app.addHook('onRequest', (request, reply, done) => {
    markAnswer(reply, request.id);
    void reply.header('Connection', 'close');
    done();
  });
  app.addHook('onRequest', httpsOnly);
  answerErrors(app);
  return app;
}
