import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseKeyRing } from '../db/endpoints/key-ring';
import { ensureSite } from '../site/build';
import { withDemoReceiver } from '../dev/demo-webhooks';
import { ensureWebhookKeys, runStack, startStack, untilReady } from '../dev/stack';
import { describeConfig, misspelt, readConfig } from '../runtime/config/config';
import { warnOfOldNode } from '../runtime/process';
import { createLogger, logTo } from '../runtime/telemetry/logger';
import { startApi } from '../api/start-api';
import { startWorker } from '../worker/start-worker';
import { installTemporalRuntime } from '../runtime/temporal/temporal-runtime';
import { temporalTarget } from '../runtime/temporal/temporal-target';
import { workerOptions } from '../worker/options';
import { helped } from './main';

const HELP = {
  usage: 'npm start',
  purpose:
    'Everything on this machine, for people: Postgres, Temporal, API, worker, a demo shop and a receiver. Ctrl-C stops it.',
};

if (!helped(HELP))
  void runStack(async (signals) => {
    const config = readConfig();
    for (const slip of misspelt()) console.warn(slip);
    const dataDir = resolve(config.DATA_DIR);
    const webhookKeys = config.WEBHOOK_KEYS ?? (await ensureWebhookKeys(dataDir));
    const destination = logTo(join(dataDir, 'services.log'));
    const logger = createLogger(config, destination);
    // Some seconds of another process, once; the API reads what it makes.
    const site = ensureSite();
    site.catch(() => undefined);
    let workerMetrics = async () => '';
    return startStack({
      ...signals,
      config,
      keyRing: parseKeyRing(webhookKeys),
      write: (text) => process.stdout.write(text),
      startServices: async ({ databaseUrl, tls }) => {
        logger.info(describeConfig(config), 'start: settings');
        warnOfOldNode(logger, process.versions.node);
        await site;
        const api = await startApi({
          config,
          databaseUrl,
          tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
          logger,
          ports: { api: config.API_PORT, internal: config.INTERNAL_PORT },
          moreMetrics: () => workerMetrics(),
          ownHostOnly: true,
        });
        return async () => {
          await api.close();
          destination.flushSync();
        };
      },
      startWorker: async ({ databaseUrl, tls }) => {
        const temporalMetrics = await installTemporalRuntime(logger);
        const settings = withDemoReceiver(config, { webhookKeys, caFile: tls.caFile });
        const temporal = temporalTarget(config);
        const worker = await startWorker(
          workerOptions(settings, { databaseUrl, temporal, logger, besideApi: true }),
        );
        workerMetrics = async () => `${await worker.registry.metrics()}${await temporalMetrics()}`;
        const limits = { timeoutMs: 30_000, signal: signals.signal };
        const ready = await untilReady(() => worker.checkReady(), limits);
        return { ready, stop: () => worker.close() };
      },
    });
  });
