import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiMetrics } from '../metrics';
import { createRefusalSample } from './refusal-sample';
import { routeNameOf } from './route-name';

/** Counts and logs requests for which the framework runs no hooks. */
export interface RequestObserver {
  /** A request whose URL could not be read. */
  answered(request: FastifyRequest, reply: FastifyReply): void;
  /** A request that could not be read at all. */
  unreadable(requestId: string): void;
}

/**
 * Counts every request and logs one line for it, when it has been answered: no body, no header, no query. Of refusals that
 * no limit per key bounds, a few lines a second are logged and the rest counted.
 */
export function observeRequests(
  app: FastifyInstance,
  logger: FastifyBaseLogger,
  metrics: Pick<ApiMetrics, 'observeRequest'>,
): RequestObserver {
  // Every value of the line is ours or harmless, and looking for secrets in each would cost half of the line.
  const lines = logger.child({}, { redact: [] });
  const sample = createRefusalSample((kind, leftOut) =>
    lines.info({ ...kind, leftOut }, 'refusals not logged'),
  );
  app.addHook('onClose', (_app, done) => {
    sample.flush();
    done();
  });

  function observe(line: Line): void {
    const { route, status, ms, keyId } = line;
    metrics.observeRequest(route, status, ms);
    const bounded = status < 400 || status >= 500 || (keyId !== undefined && status !== 429);
    if (bounded || sample.admit({ route, status, keyId }))
      lines.info({ ...line, ms: Math.round(ms * 10) / 10 }, 'request');
  }
  function answered(request: FastifyRequest, reply: FastifyReply): void {
    observe({
      requestId: request.id,
      method: request.method,
      route: routeNameOf(request),
      status: reply.statusCode,
      ms: reply.elapsedTime,
      keyId: keyIdOf(request),
    });
  }
  app.addHook('onResponse', (request, reply, done) => {
    answered(request, reply);
    done();
  });
  return {
    answered,
    unreadable: (requestId) =>
      observe({ requestId, method: 'none', route: 'none', status: 400, ms: 0, keyId: undefined }),
  };
}

interface Line {
  readonly requestId: string;
  readonly method: string;
  /** A pattern, never a path. */
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly keyId: string | undefined;
}

/** Of the partner's key or the service key; undefined where none was looked at. */
function keyIdOf(request: FastifyRequest): string | undefined {
  const { caller, service } = request as { caller?: { keyId: string }; service?: { keyId: string } };
  return (caller ?? service)?.keyId;
}
