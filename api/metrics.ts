import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What an API process counts; served on the internal listener. */
export type ApiMetrics = ReturnType<typeof createApiMetrics>;

/** @param deps.quotesWaiting how many quotes wait for their insert. */
export function createApiMetrics(deps: {
  readonly isCatalogueTrusted: () => boolean;
  readonly quotesWaiting: () => number;
}) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  /** Read when it is scraped; the registry keeps it. */
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
  // Looking a series up by its labels costs more than counting in it.
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
  // Shown from the start: Prometheus sees no rise in what appears with its first one.
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
    rateLimitFallbacks: counter(
      'pfqs_rate_limit_fallback_total',
      'Calls counted in memory because Redis was away, hung or failing.',
    ),
    catalogueErrors: counter(
      'pfqs_catalogue_error_total',
      'Faults of the change feed and of reading keys and merchants anew.',
    ),
    /** Counts and times one answered request. `route` is a pattern, never a path: a stranger must not make series. */
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

/** Connections that a listener has open at this moment. */
export function openConnections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count ?? 0)));
}
