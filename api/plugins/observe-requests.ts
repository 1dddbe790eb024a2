import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiMetrics } from '../metrics';
import { routeNameOf } from './route-name';

/** Counts every request and logs one line for it, when it has been answered: no body, no header, no query. */
export function observeRequests(
  app: FastifyInstance,
  logger: FastifyBaseLogger,
  metrics: Pick<ApiMetrics, 'observeRequest'>,
): void {
  // Every value of the line is ours or harmless, and looking for secrets in each would cost half of the line.
  const lines = logger.child({}, { redact: [] });
  app.addHook('onResponse', (request, reply, done) => {
    const route = routeNameOf(request);
    const milliseconds = reply.elapsedTime;
    metrics.observeRequest(route, reply.statusCode, milliseconds);
    lines.info(
      {
        requestId: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        ms: Math.round(milliseconds * 10) / 10,
        keyId: keyIdOf(request),
      },
      'request',
    );
    done();
  });
}

/** Of the partner's key or the service key; undefined where none was looked at. */
function keyIdOf(request: FastifyRequest): string | undefined {
  const { caller, service } = request as { caller?: { keyId: string }; service?: { keyId: string } };
  return (caller ?? service)?.keyId;
}
