import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What an API process counts; served on the internal listener. */
export interface ApiMetrics {
  readonly registry: Registry;
  /** Calls counted in memory although Redis is configured. */
  readonly rateLimitFallbacks: Counter;
  /** Calls refused with 429, by the limit per key and minute. */
  readonly rateLimitRefused: Counter;
  /** Calls refused because their address had made too many without a valid key. */
  readonly keylessRefused: Counter;
  /** Connections closed because their address had too many that brought no valid key. */
  readonly connectionsClosed: Counter;
  /** Test notifications refused because their month is used up. */
  readonly testLimitRefused: Counter<'environment'>;
  /** Look-ups and inserts that Postgres did not answer in time, and other faults behind an answer of 500. */
  readonly catalogueErrors: Counter;
  /** Counts and times one answered request. `route` is a pattern, never a path: a stranger must not make series. */
  observeRequest(route: string, status: number, milliseconds: number): void;
  /** Counts the connections of a listener. */
  observeConnections(app: FastifyInstance): void;
}

export interface ApiMetricsDeps {
  readonly isCatalogueTrusted: () => boolean;
  /** Quotes that wait for their insert. */
  readonly quotesWaiting: () => number;
}

export function createApiMetrics({ isCatalogueTrusted, quotesWaiting }: ApiMetricsDeps): ApiMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const requests = new Histogram({
    name: 'pfqs_http_request_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    labelNames: ['route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  // Looking a series up by its labels costs more than counting in it.
  const known = new Map<string, ReturnType<typeof requests.labels>>();
  const trusted: Gauge = new Gauge({
    name: 'pfqs_catalogue_trusted',
    help: '1 while keys and merchants are answered from memory, 0 while Postgres is read instead.',
    registers,
    collect: () => trusted.set(isCatalogueTrusted() ? 1 : 0),
  });
  const waiting: Gauge = new Gauge({
    name: 'pfqs_quotes_waiting',
    help: 'Quotes that wait for their insert; at 2,000 more are refused.',
    registers,
    collect: () => waiting.set(quotesWaiting()),
  });
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
    rateLimitRefused: new Counter({
      name: 'pfqs_rate_limit_refused_total',
      help: 'Calls refused because their key had used its limit per minute.',
      registers,
    }),
    keylessRefused: new Counter({
      name: 'pfqs_keyless_refused_total',
      help: 'Calls refused because their address had made too many without a valid key.',
      registers,
    }),
    connectionsClosed: new Counter({
      name: 'pfqs_connections_closed_total',
      help: 'Connections closed because their address had too many that brought no valid key.',
      registers,
    }),
    testLimitRefused,
    rateLimitFallbacks: new Counter({
      name: 'pfqs_rate_limit_fallback_total',
      help: 'Calls counted in memory because Redis was away, hung or failing.',
      registers,
    }),
    catalogueErrors: new Counter({
      name: 'pfqs_catalogue_error_total',
      help: 'Faults of the change feed and of reading keys and merchants anew.',
      registers,
    }),
    observeRequest(route, status, milliseconds) {
      const key = `${status} ${route}`;
      let series = known.get(key);
      if (series === undefined) known.set(key, (series = requests.labels(route, String(status))));
      series.observe(milliseconds / 1000);
    },
    observeConnections(app) {
      const connections: Gauge = new Gauge({
        name: 'pfqs_http_connections',
        help: 'Connections open on the public listener, idle ones too.',
        registers,
        collect: async () => connections.set(await openConnections(app)),
      });
    },
  };
}

/** Connections that a listener has open at this moment. */
export function openConnections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count ?? 0)));
}
