import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { ulid } from 'ulid';
import { checkSession, type Database } from '../db/postgres/connect';
import { BEAT_EVERY_MS } from '../db/processes';
import { createQuoteWriter } from '../db/quotes/store';
import type { Config } from '../runtime/config/config';
import { keepBeating } from '../runtime/beat';
import { reportLogin } from '../runtime/login';
import { openTogether, type Closers } from '../runtime/closers';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { openTracing } from '../runtime/telemetry/tracing';
import { startLoop, withTimeout } from '../timing/timing';
import { buildApp } from './app';
import { createAttemptWatch } from './attempt-watch';
import { createKeyUses, openCatalogue } from './catalogue';
import { buildInternalApp } from './internal-app';
import { connectRedis, createRateLimiter, redisTrouble } from './limits';
import { drainable, useCertificate, type TlsFiles } from './listener';
import { createApiMetrics } from './observe';
import { openPools } from './pools';
import { apiQueries } from './queries';

// Longest time to finish requests at a stop, in milliseconds. The longest answer, a test, takes 10 s.
const SHUTDOWN_GRACE_MS = 15_000;
/** Longest time to close the internal listener, which is closed last, in milliseconds. */
const LAST_GRACE_MS = 1_000;

/** Redis answers within a millisecond or two. A call that would wait longer is counted in memory. */
const REDIS_TIMEOUT_MS = 100;

export interface ApiProcessOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly tls: TlsFiles | null;
  readonly logger: Logger;
  readonly moreMetrics?: () => Promise<string>;
  /** For a machine with a browser: the internal listener answers for `localhost` and addresses alone. */
  readonly ownHostOnly?: boolean;
  readonly ports: { readonly api: number; readonly internal: number };
  readonly redisTimeoutMs?: number;
  /** For a test that cuts off the change feed alone. */
  readonly listenUrl?: string;
}

export async function startApi(options: ApiProcessOptions) {
  return openTogether((closers) => start(options, closers));
}

async function start(options: ApiProcessOptions, closers: Closers) {
  const { config, databaseUrl, logger, ports } = options;
  const timeoutMs = config.DATABASE_TIMEOUT_MS;
  const tracing = openTracing(config, 'pfqs-api');
  const pools = openPools({ url: databaseUrl, statementTimeoutMs: timeoutMs }, config.DATABASE_POOL_SIZE);
  const { own: database, inserts } = pools;
  closers.add(() => Promise.all([pools.close(), tracing?.close()]));
  const keyUses = createKeyUses(database.sql);
  const writing = startLoop({
    round: keyUses.write,
    everyMs: BEAT_EVERY_MS,
    // A failed write is left to the next round, as it only informs operators.
    onError: () => undefined,
  });
  closers.add(() => writing.stop());
  const build = config.WORKER_BUILD_ID ?? null;
  const writer = createQuoteWriter({ sql: inserts.sql, deadlineMs: timeoutMs });

  const metrics = createApiMetrics({
    build,
    isCatalogueTrusted: () => catalogue.trusted(),
    quotesWaiting: () => writer.waiting(),
  });
  const repeats = repeatedWarnings(logger);
  const redis = config.REDIS_URL
    ? connectRedis(config.REDIS_URL, options.redisTimeoutMs ?? REDIS_TIMEOUT_MS, (error) =>
        repeats.warn({ err: error }, 'redis'),
      )
    : null;
  closers.add(() => redis?.disconnect());
  const about = { processId: ulid(), kind: 'api', build } as const;
  const beat = keepBeating(database.sql, about, {
    trouble: async () => redis && redisTrouble(redis),
  });
  closers.add(() => beat.stop());
  redis?.on('ready', () => beat.wake());
  const limiter = createRateLimiter({
    limit: config.RATE_LIMIT_PER_MINUTE,
    redis,
    onFallback: (cause) => {
      metrics.rateLimitFallbacks.inc();
      repeats.warn({ err: cause }, 'redis did not answer: rate limits are counted in memory');
    },
  });
  const attempts = createAttemptWatch();
  const catalogue = openCatalogue({
    sql: database.sql,
    listenUrl: options.listenUrl ?? databaseUrl,
    readTimeoutMs: timeoutMs,
    attempts,
    onError: (error) => {
      metrics.catalogueErrors.inc();
      repeats.warn(
        { err: error },
        'the catalogue cannot be kept in memory for now: reading Postgres instead',
      );
    },
  });
  closers.add(() => catalogue.close());

  const queries = apiQueries(pools, config, tracing);
  const shared = {
    queries,
    metrics,
    tracer: tracing,
    onKeyUsed: keyUses.used,
    keylessPerMinute: config.KEYLESS_CALLS_PER_MINUTE,
    trustedProxies: config.TRUSTED_PROXIES,
  };
  let stopping = false;
  let opened: Promise<unknown> | null = null;
  const internal = buildInternalApp({
    logger,
    metrics: async () => `${await metrics.registry.metrics()}${(await options.moreMetrics?.()) ?? ''}`,
    checkReady: async () => {
      if (stopping) throw new Error('stopping');
      // At first every connection is opened: the first quotes would fail where Postgres is too busy to begin sessions soon.
      // Calls that come meanwhile wait for the same ones.
      opened ??= Promise.all([inserts, database].map(openEvery)).catch((error: unknown) => {
        opened = null;
        throw error;
      });
      const mostMs = Math.min(timeoutMs, 1_000);
      const asked = opened.then(() => checkSession(database.sql, mostMs));
      await withTimeout(asked, mostMs, 'readiness');
    },
    ownHostOnly: options.ownHostOnly ?? false,
    applications: shared,
  });
  // Readiness and metrics can be read while the public listener drains.
  closers.add(() => withGrace(internal.close(), LAST_GRACE_MS));
  const app = buildApp({
    ...shared,
    catalogue,
    attempts,
    limiter,
    logger,
    tls: options.tls,
    publicUrl: config.PUBLIC_URL ?? `https://localhost:${config.API_PORT}`,
    storeQuote: tracing === null ? writer.add : (row) => tracing.step('store quote', () => writer.add(row)),
  });
  const drain = drainable(app);
  closers.add(() => withGrace(Promise.allSettled([drain()]), SHUTDOWN_GRACE_MS));

  const apiPort = await listen(app, config.API_HOST, ports.api);
  const internalPort = await listen(internal, config.INTERNAL_HOST, ports.internal);
  closers.add(() => {
    stopping = true;
    return sleep(config.SHUTDOWN_DELAY_MS);
  });
  const production = config.ENVIRONMENT === 'production';
  void reportLogin(database.sql, 'api', { logger, production, timeoutMs });
  return {
    apiPort,
    internalPort,
    /**
     * Gives new connections this certificate.
     * @throws when it cannot be used; then the old one stays
     */
    useCertificate: (tls: TlsFiles) => useCertificate(app.server, tls),
    /** Stops listening after SHUTDOWN_DELAY_MS, finishes what is under way, then closes Postgres and Redis. */
    close: () => closers.close(),
  };
}

/** Statements made together get a connection each. */
const openEvery = ({ sql }: Database) =>
  Promise.all(Array.from({ length: sql.options.max }, () => sql`select 1`));

async function listen(app: FastifyInstance, host: string, port: number): Promise<number> {
  await app.listen({ host, port });
  return (app.server.address() as AddressInfo).port;
}

async function withGrace(closing: Promise<unknown>, graceMs: number): Promise<void> {
  await withTimeout(closing, graceMs, 'close').catch(() => undefined);
}
