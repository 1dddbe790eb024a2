import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { ApiMetrics } from '../metrics';
import { routeNameOf } from './route-name';

/**
 * Counts every request and logs one line for it, when it has been answered: no body, no header, no query. Of refusals that
 * no limit per key bounds, a few lines a second are logged and the rest counted.
 * @returns what counts and logs a request that could not be read at all: the framework runs no hooks for it.
 */
export function observeRequests(
  app: FastifyInstance,
  logger: FastifyBaseLogger,
  metrics: Pick<ApiMetrics, 'observeRequest'>,
) {
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
    const underLimit = keyId !== undefined && status !== 429 && route !== 'none';
    const bounded = status < 400 || status >= 500 || underLimit;
    if (bounded || sample.admit({ route, status, keyId }))
      lines.info({ ...line, ms: Math.round(ms * 10) / 10 }, 'request');
  }
  app.addHook('onResponse', (request, reply, done) => {
    observe({
      requestId: request.id,
      method: request.method,
      route: routeNameOf(request),
      status: reply.statusCode,
      ms: reply.elapsedTime,
      keyId: keyIdOf(request),
    });
    done();
  });
  return (requestId: string): void =>
    observe({ requestId, method: 'none', route: 'none', status: 400, ms: 0, keyId: undefined });
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

/** Lines per second and kind of refusal: enough to see what it is. */
const LINES_PER_SECOND = 10;

/** What refusals of one kind have in common. `keyId` is of a key that has used its limit. */
type RefusalKind = Pick<Line, 'route' | 'status' | 'keyId'>;

/**
 * Keeps a flood of refused calls from flooding the log. What is left out is reported once a second, with its number.
 * @returns `admit`: whether this refusal is logged by itself; `flush`: reports what was left out so far.
 */
function createRefusalSample(report: (kind: RefusalKind, leftOut: number) => void) {
  const seen = new Map<string, { readonly kind: RefusalKind; count: number }>();
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const { kind, count } of seen.values())
      if (count > LINES_PER_SECOND) report(kind, count - LINES_PER_SECOND);
    seen.clear();
  }
  function admit(kind: RefusalKind): boolean {
    timer ??= setTimeout(flush, 1_000).unref();
    const name = `${kind.status} ${kind.route} ${kind.keyId}`;
    const known = seen.get(name) ?? { kind, count: 0 };
    seen.set(name, known);
    known.count += 1;
    return known.count <= LINES_PER_SECOND;
  }
  return { admit, flush };
}

/** Of the partner's key or the service key; undefined where none was looked at. */
function keyIdOf(request: FastifyRequest): string | undefined {
  const { caller, service } = request as { caller?: { keyId: string }; service?: { keyId: string } };
  return (caller ?? service)?.keyId;
}
