import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { showProcess } from '../runtime/process';
import type { RequestSpan, RequestTracer } from '../runtime/telemetry/tracing';

export type ApiMetrics = ReturnType<typeof createApiMetrics>;

/** @param deps.quotesWaiting how many quotes wait for their insert */
export function createApiMetrics(deps: {
  readonly build: string | null;
  readonly isCatalogueTrusted: () => boolean;
  readonly quotesWaiting: () => number;
}) {
  const registry = new Registry();
  showProcess(registry, deps.build);
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read());
      },
    });
  const requests = new Histogram({
    name: 'pfqs_http_request_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    labelNames: ['route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  // Finding a series by its labels costs more than counting in it.
  const known = new Map<string, ReturnType<typeof requests.labels>>();
  gauge(
    'pfqs_catalogue_trusted',
    '1 while keys and merchants are answered from memory, 0 while Postgres is read instead.',
    () => (deps.isCatalogueTrusted() ? 1 : 0),
  );
  gauge(
    'pfqs_quotes_waiting',
    'Quotes that wait for their insert; at 2,000 more are refused.',
    deps.quotesWaiting,
  );
  const testLimitRefused = new Counter({
    name: 'pfqs_test_limit_refused_total',
    help: 'Test notifications refused because the month of partner and environment was used up.',
    labelNames: ['environment'] as const,
    registers,
  });
  // Both series exist from the start, because Prometheus sees no increase in a series that begins with 1.
  for (const environment of ['sandbox', 'live']) testLimitRefused.inc({ environment }, 0);
  return {
    registry,
    rateLimitRefused: counter(
      'pfqs_rate_limit_refused_total',
      'Calls refused because their key had used its limit per minute.',
    ),
    keylessRefused: counter(
      'pfqs_keyless_refused_total',
      'Calls refused because their address had made too many without a valid key.',
    ),
    connectionsClosed: counter(
      'pfqs_connections_closed_total',
      'Connections closed because their address had too many that brought no valid key.',
    ),
    crowdedQuoteApplications: counter(
      'pfqs_crowded_quote_applications_total',
      'Applications opened from a quote that had 20 or more already.',
    ),
    testLimitRefused,
    // Lenders are few, and only pairs that were reported have a series.
    lenderContradictions: new Counter({
      name: 'pfqs_lender_contradictions_total',
      help: "Lenders' events that were not applied because they contradict the application's state, by lender and both states.",
      labelNames: ['lender', 'from', 'to'] as const,
      registers,
    }),
    rateLimitFallbacks: counter(
      'pfqs_rate_limit_fallback_total',
      'Calls counted in memory because Redis was away, hung or failing.',
    ),
    catalogueErrors: counter(
      'pfqs_catalogue_error_total',
      'Faults of the change feed and of reading keys and merchants anew.',
    ),
    /** @param route a pattern, never a path, so that strangers cannot create series */
    observeRequest(route: string, status: number, milliseconds: number): void {
      const key = `${status} ${route}`;
      let series = known.get(key);
      if (series === undefined) known.set(key, (series = requests.labels(route, String(status))));
      series.observe(milliseconds / 1000);
    },
    observeConnections(app: FastifyInstance): void {
      const help = 'Connections open on the public listener, idle ones too.';
      gauge('pfqs_http_connections', help, () => openConnections(app));
    },
  };
}

export function openConnections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count ?? 0)));
}

/**
 * Counts every answered request and logs one line for it, without body, headers or query. Of refusals
 * without a limit per key, a few lines a second are logged and the others counted.
 * @returns counts and logs an unreadable request, for which Fastify runs no hooks
 */
export function observeRequests(app: FastifyInstance, metrics: Pick<ApiMetrics, 'observeRequest'>) {
  // The line contains no secrets, and searching it for some would double its cost.
  const lines = app.log.child({}, { redact: [] });
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
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly keyId: string | undefined;
}

const LINES_PER_SECOND = 10;

type RefusalKind = Pick<Line, 'route' | 'status' | 'keyId'>;

/**
 * Limits the log lines of refused calls.
 * @returns `admit`: whether this one gets a line; `flush`: reports those left out, once a second
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

function keyIdOf(request: FastifyRequest): string | undefined {
  const { caller, service } = request as { caller?: { keyId: string }; service?: { keyId: string } };
  return (caller ?? service)?.keyId;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly routeName?: string;
  }
  interface FastifyRequest {
    span: RequestSpan | null;
  }
}

/** The name of a request's route in logs, metrics and traces. Unknown paths share one name. */
function routeNameOf({ routeOptions }: FastifyRequest): string {
  return routeOptions.config.routeName ?? routeOptions.url ?? 'none';
}

/** Makes a span of every request. Without a tracer it adds no hooks. */
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
  // This is no earlier hook, because reading the body from the socket loses the asynchronous context.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span === null) done();
    else request.span.within(done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    request.span?.end({ route: routeNameOf(request), status: reply.statusCode });
    done();
  });
}
