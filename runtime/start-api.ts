import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from '../api/app';
import { createCatalogue } from '../api/catalogue/catalogue';
import { buildInternalApp } from '../api/internal-app';
import { createAttemptWatch } from '../api/notifications/attempt-watch';
import { createRateLimiter } from '../api/limits/rate-limiter';
import { createApiMetrics } from '../api/metrics';
import { drainable } from '../api/plugins/drain';
import { buildPlainApp } from '../api/plain-app';
import type { TlsFiles } from '../api/server-options';
import { applicationEventText } from '../contracts/application-event';
import { CATALOGUE_CHANNEL, openChangeFeed } from '../db/postgres/change-feed';
import { connectDatabase } from '../db/postgres/connect';
import { withDeadline } from '../db/postgres/deadline';
import { applicationExists, findApplication } from '../db/applications/read';
import { createApplication } from '../db/applications/create';
import { recordLenderEvent } from '../db/applications/record-lender-event';
import { findServiceKeyByHash } from '../db/keys/service-keys';
import { findKeyByHash, loadAllKeys, loadKeysOfPartner } from '../db/keys/api-keys';
import { readProgress } from '../db/notifications/progress';
import { ATTEMPTS_CHANNEL } from '../db/notifications/record-attempt';
import { insertTestNotification } from '../db/notifications/enqueue-test';
import { loadMerchant } from '../db/catalogue/merchants';
import { keepPartitionsAhead } from '../db/postgres/partitions';
import { createQuoteWriter, QUOTE_STATEMENTS_AT_A_TIME } from '../db/quotes/writer';
import type { Config } from './config/config';
import { newEventId, newNotificationId, newQuoteId, newRequestId } from './ids';
import { connectRedis } from './redis';
import { openTracing } from './telemetry/tracing';

export interface ApiProcessOptions {
  readonly config: Config;
  /** Replaces DATABASE_URL, for the embedded stack. */
  readonly databaseUrl: string;
  readonly tls: TlsFiles | null;
  readonly logger: Logger;
  /** What `/metrics` shows besides: of a worker in the same process. */
  readonly moreMetrics?: () => Promise<string>;
  /** Longest wait for Redis, in milliseconds. Default: REDIS_TIMEOUT_MS. */
  readonly redisTimeoutMs?: number;
  /** Ports to listen on; 0 takes a free one. */
  readonly ports: { readonly api: number; readonly internal: number; readonly plain: number | null };
}

export interface ApiProcess {
  readonly apiPort: number;
  readonly internalPort: number;
  readonly plainPort: number | null;
  /** After SHUTDOWN_DELAY_MS stops listening, finishes what is under way within the grace, then lets go of Postgres and Redis. */
  close(): Promise<void>;
}

/** Most merchants in memory, the least recently used give way. Far above the merchants there are. */
const MOST_MERCHANTS = 20_000;
/** Redis answers within a millisecond or two. A call that waited longer than this is better counted in memory, and answered. */
const REDIS_TIMEOUT_MS = 100;

const monotonicMs = () => performance.now();
const now = () => new Date();

/** Starts one API process: the public and the internal listener, on the given Postgres and Redis. */
export async function startApi(options: ApiProcessOptions): Promise<ApiProcess> {
  const { config, databaseUrl, logger, ports } = options;
  const timeoutMs = config.DATABASE_TIMEOUT_MS;
  const database = connectDatabase({
    url: databaseUrl,
    poolSize: config.DATABASE_POOL_SIZE,
    applicationName: 'pfqs api',
    statementTimeoutMs: timeoutMs,
  });
  const { sql } = database;
  // Inserts have connections of their own, as many as there are statements at a time: a slow read never delays one, and
  // each connection soon has every statement prepared.
  const inserts = connectDatabase({
    url: databaseUrl,
    poolSize: QUOTE_STATEMENTS_AT_A_TIME,
    applicationName: 'pfqs api quotes',
    statementTimeoutMs: timeoutMs,
  });
  const metrics = createApiMetrics({
    isCatalogueTrusted: () => feed.trusted(),
    quotesWaiting: () => writer.waiting(),
  });
  const onCatalogueError = (error: unknown) => {
    metrics.catalogueErrors.inc();
    logger.warn({ err: error }, 'the catalogue cannot be kept in memory for now: reading Postgres instead');
  };
  const catalogue = createCatalogue({
    source: {
      loadAllKeys: () => loadAllKeys(sql),
      loadKeysOfPartner: (partnerId) => loadKeysOfPartner(sql, partnerId),
      findKeyByHash: (hash) => findKeyByHash(sql, hash),
      loadMerchant: (merchantId) => loadMerchant(sql, merchantId),
    },
    mostMerchants: MOST_MERCHANTS,
    readTimeoutMs: timeoutMs,
    onError: onCatalogueError,
  });
  const attempts = createAttemptWatch();
  const feed = openChangeFeed({
    database: { url: config.DATABASE_LISTEN_URL ?? databaseUrl, applicationName: 'pfqs api' },
    channels: [CATALOGUE_CHANNEL, ATTEMPTS_CHANNEL],
    onConnect: async () => {
      await catalogue.onConnect();
      attempts.lookAgain();
    },
    onChange: (subject, channel) =>
      channel === ATTEMPTS_CHANNEL ? attempts.heard(subject) : catalogue.onChange(subject),
    onError: onCatalogueError,
    monotonicMs,
  });
  catalogue.trustWhen(() => feed.trusted());

  const redis = config.REDIS_URL
    ? connectRedis(config.REDIS_URL, options.redisTimeoutMs ?? REDIS_TIMEOUT_MS, (error) =>
        logger.warn({ err: error }, 'redis'),
      )
    : null;
  const limiter = createRateLimiter({
    limit: config.RATE_LIMIT_PER_MINUTE,
    windowSeconds: 60,
    redis,
    monotonicMs,
    onFallback: (cause) => {
      metrics.rateLimitFallbacks.inc();
      logger.warn({ err: cause }, 'redis did not answer: rate limits are counted in memory');
    },
  });
  const writer = createQuoteWriter({ sql: inserts.sql, deadlineMs: timeoutMs });
  const tracing = openTracing(config, 'pfqs-api');
  const step = <T>(name: string, task: () => Promise<T>) =>
    tracing === null ? task() : tracing.step(name, task);
  /** What is stored with a notification, so that its delivery joins the trace. */
  const traced = <Wanted>(wanted: Wanted) => ({ ...wanted, traceParent: tracing?.current() ?? null });
  const app = buildApp({
    catalogue,
    limiter,
    logger,
    metrics,
    tls: options.tls,
    trustedProxies: config.TRUSTED_PROXIES,
    tracer: tracing,
    storeQuote: tracing === null ? writer.add : (row) => tracing.step('store quote', () => writer.add(row)),
    storeTest: async (notification) => {
      const answer = await step('store notification', () =>
        withDeadline(insertTestNotification(sql, traced(notification)), timeoutMs, 'test notification'),
      );
      if (answer.kind === 'limit_reached')
        metrics.testLimitRefused.inc({ environment: notification.environment });
      return answer;
    },
    readProgress: (notificationId) =>
      withDeadline(readProgress(database.db, notificationId), timeoutMs, 'test notification'),
    attempts,
    now,
    newQuoteId,
    newNotificationId,
    newEventId,
    newRequestId,
  });
  let stopping = false;
  const internal = buildInternalApp({
    logger,
    metrics: async () => `${await metrics.registry.metrics()}${(await options.moreMetrics?.()) ?? ''}`,
    checkReady: async () => {
      if (stopping) throw new Error('stopping');
      await withDeadline(sql`select 1`, Math.min(timeoutMs, 1_000), 'readiness');
    },
    newRequestId,
    applications: {
      metrics,
      tracer: tracing,
      findServiceKey: (hash) =>
        withDeadline(findServiceKeyByHash(database.db, hash), timeoutMs, 'service key'),
      createApplication: (wanted) =>
        step('store application', () =>
          withDeadline(
            createApplication(database.db, traced(wanted), applicationEventText),
            timeoutMs,
            'credit application',
          ),
        ),
      recordLenderEvent: (told) =>
        step('store lender event', () =>
          withDeadline(
            recordLenderEvent(database.db, traced(told), {
              write: applicationEventText,
              waitSeconds: config.LENDER_EVENT_WAIT_SECONDS,
            }),
            timeoutMs,
            'lender event',
          ),
        ),
      findApplication: (applicationId, scope) =>
        withDeadline(findApplication(database.db, applicationId, scope), timeoutMs, 'credit application'),
      applicationExists: (applicationId) =>
        withDeadline(applicationExists(database.db, applicationId), timeoutMs, 'credit application'),
    },
  });
  const plain = ports.plain === null ? null : buildPlainApp({ logger, newRequestId });
  const partitions = keepPartitionsAhead(sql, (error) => logger.error({ err: error }, 'partitions'));

  const drain = drainable(app);
  const others = [internal, ...(plain ? [plain] : [])];
  async function close(): Promise<void> {
    stopping = true;
    await sleep(config.SHUTDOWN_DELAY_MS);
    await withGrace([drain()], config.SHUTDOWN_GRACE_MS);
    // Last, so that readiness and metrics can be read while the rest stops.
    await withGrace(
      others.map((listener) => listener.close()),
      1_000,
    );
    partitions.stop();
    await feed.close();
    redis?.disconnect();
    await Promise.all([inserts.close(), database.close(), tracing?.close()]);
  }
  try {
    const apiPort = await listen(app, config.API_HOST, ports.api);
    const internalPort = await listen(internal, config.INTERNAL_HOST, ports.internal);
    const plainPort =
      plain && ports.plain !== null ? await listen(plain, config.API_HOST, ports.plain) : null;
    return { apiPort, internalPort, plainPort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function listen(app: FastifyInstance, host: string, port: number): Promise<number> {
  await app.listen({ host, port });
  return (app.server.address() as AddressInfo).port;
}

async function withGrace(closing: readonly Promise<unknown>[], graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise((resolve) => (timer = setTimeout(resolve, graceMs)));
  await Promise.race([Promise.allSettled(closing), grace]);
  clearTimeout(timer);
}
