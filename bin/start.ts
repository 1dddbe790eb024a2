import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import pino from 'pino';
import { seedDemo } from '../dev/seed';
import { runStack, startStack, welcome } from '../dev/stack';
import { type Config, describeConfig, readConfig } from '../runtime/config';
import { createLogger } from '../runtime/logger';
import { ensureSearchAttributes } from '../runtime/search-attributes';
import { startApi } from '../runtime/start-api';
import { connectTemporal } from '../runtime/temporal';
import { externalTemporal } from '../runtime/temporal-target';

/** Everything on one machine, for people: `npm start`. The services log into DATA_DIR/services.log. */
void runStack(async (signals) => {
  const config = readConfig();
  const dataDir = resolve(config.DATA_DIR);
  const stack = await startStack({
    ...signals,
    dataDir,
    apiHost: config.API_HOST,
    apiPort: config.API_PORT,
    internalHost: config.INTERNAL_HOST,
    internalPort: config.INTERNAL_PORT,
    postgresPort: config.POSTGRES_PORT,
    databaseUrl: config.DATABASE_URL,
    receiverPort: config.RECEIVER_PORT,
    temporal: {
      external: externalTemporalOf(config),
      port: config.TEMPORAL_PORT,
      uiPort: config.TEMPORAL_UI_PORT,
      namespace: config.TEMPORAL_NAMESPACE ?? 'default',
      toolsDir: config.TOOLS_DIR,
    },
    write: (text) => process.stdout.write(text),
    seed: seedDemo,
    startServices: async ({ databaseUrl, tls }) => {
      const destination = pino.destination({ dest: join(dataDir, 'services.log'), mkdir: true, sync: false });
      const logger = createLogger(config, destination);
      logger.info(describeConfig(config), 'start: settings');
      const api = await startApi({
        config,
        databaseUrl,
        tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
        logger,
        ports: { api: config.API_PORT, internal: config.INTERNAL_PORT, plain: config.PLAIN_PORT ?? null },
      });
      return async () => {
        await api.close();
        destination.flushSync();
      };
    },
  });
  process.stdout.write(welcome(stack.info));
  return stack;
});

/** A Temporal that the settings name, made ready before the worker needs it. */
function externalTemporalOf(config: Config) {
  const target = externalTemporal(config);
  if (target === undefined) return undefined;
  return {
    address: target.connection.address,
    prepare: async () => {
      const temporal = connectTemporal(config);
      try {
        await temporal.check(10_000);
        await ensureSearchAttributes(temporal.client.connection, temporal.namespace);
      } finally {
        await temporal.close();
      }
    },
  };
}
