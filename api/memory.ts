import type { Logger } from 'pino';
import { createCatalogue } from './catalogue/catalogue';
import type { ApiMetrics } from './metrics';
import { createAttemptWatch } from './notifications/attempt-watch';
import { loadMerchant } from '../db/catalogue/merchants';
import { findKeyByHash, loadAllKeys, loadKeysOfPartner } from '../db/keys/api-keys';
import { ATTEMPTS_CHANNEL } from '../db/notifications/notification';
import { CATALOGUE_CHANNEL, openChangeFeed } from '../db/postgres/change-feed';
import type { Sql } from '../db/postgres/connect';
import type { Config } from '../runtime/config/config';

/** Most merchants in memory, the least recently used give way. Far above the merchants there are. */
const MOST_MERCHANTS = 20_000;

interface ApiMemoryDeps {
  readonly config: Pick<Config, 'DATABASE_TIMEOUT_MS'>;
  readonly sql: Sql;
  /** For LISTEN: not through a pooler. */
  readonly listenUrl: string;
  readonly metrics: Pick<ApiMetrics, 'catalogueErrors'>;
  readonly logger: Logger;
}

/** Opens what an API process keeps in memory, and the change feed that keeps it fresh; the caller closes it. */
export function openApiMemory({ config, sql, listenUrl, metrics, logger }: ApiMemoryDeps) {
  const onError = (error: unknown) => {
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
    readTimeoutMs: config.DATABASE_TIMEOUT_MS,
    onError,
  });
  const attempts = createAttemptWatch();
  const feed = openChangeFeed({
    database: { url: listenUrl, applicationName: 'pfqs api' },
    channels: [CATALOGUE_CHANNEL, ATTEMPTS_CHANNEL],
    onConnect: async () => {
      await catalogue.onConnect();
      attempts.lookAgain();
    },
    onChange: (subject, channel) =>
      channel === ATTEMPTS_CHANNEL ? attempts.heard(subject) : catalogue.onChange(subject),
    onError,
    monotonicMs: () => performance.now(),
  });
  catalogue.trustWhen(() => feed.trusted());
  return { catalogue, attempts, feed };
}
