import type { FastifyInstance } from 'fastify';
import type { RequestSpan, RequestTracer } from '../../runtime/telemetry/tracing';
import { routeNameOf } from './route-name';

declare module 'fastify' {
  interface FastifyRequest {
    span: RequestSpan | null;
  }
}

/** Makes a span of every request. Without a tracer it adds nothing, so that a request costs nothing either. */
export function traceRequests(app: FastifyInstance, tracer: RequestTracer | null): void {
  if (tracer === null) return;
  app.decorateRequest('span', null);
  app.addHook('onRequest', (request, _reply, done) => {
    const header = request.headers['traceparent'];
    request.span = tracer.begin({
      method: request.method,
      requestId: request.id,
      traceParent: typeof header === 'string' ? header : undefined,
    });
    done();
  });
  // Only here: what ran before this hook waited for the socket, and that forgets who waits.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span === null) done();
    else request.span.within(done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    request.span?.end({ route: routeNameOf(request), status: reply.statusCode });
    done();
  });
}
