import type { FastifyInstance } from 'fastify';

/** Logs one line per request, when it has been answered: no body, no header, no query. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    request.log.info(
      {
        method: request.method,
        route: request.routeOptions.url ?? 'none',
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        // Not set where the key was not looked at.
        keyId: (request as { caller?: { keyId: string } }).caller?.keyId,
      },
      'request',
    );
    done();
  });
}
