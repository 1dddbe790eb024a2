import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { answerBrokenRequests } from './plugins/broken-requests';
import { answerErrors, notFound } from './plugins/error-answers';
import { httpsOnly } from './plugins/https-only';
import { requestIdOf } from './plugins/request-id';
import { listenerOptions, quietLogs } from './server-options';

/** Builds a plain-HTTP listener that answers nothing but "HTTPS is required": the key of a request is not looked at. */
export function buildPlainApp(deps: {
  logger: FastifyBaseLogger;
  newRequestId: () => string;
}): FastifyInstance {
  const app = Fastify({
    ...listenerOptions(null),
    loggerInstance: deps.logger,
    logController: quietLogs(),
    genReqId: (request) => requestIdOf(request.headers, deps.newRequestId),
    frameworkErrors: notFound,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  });
  answerBrokenRequests(app, deps.newRequestId);
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers({ 'X-Request-Id': request.id, Connection: 'close' });
    done();
  });
  app.addHook('onRequest', httpsOnly);
  answerErrors(app);
  return app;
}
