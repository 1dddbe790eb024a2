import type { AddressInfo } from 'node:net';
import { buildInternalApp } from '../api/internal-app';
import { describeConfig, readConfig } from '../runtime/config/config';
import { newRequestId } from '../runtime/ids';
import { warnOfOldNode } from '../runtime/node-release';
import { createLogger } from '../runtime/telemetry/logger';
import { runUntilSignal } from '../runtime/run';
import { startWorker } from '../runtime/worker/start-worker';
import { installTemporalRuntime } from '../runtime/temporal/temporal-runtime';
import { temporalTarget } from '../runtime/temporal/temporal-target';
import { workerOptions } from '../runtime/worker/worker-options';

/** One worker process on an existing Postgres and Temporal: it sends the webhooks. */
async function main(): Promise<void> {
  const config = readConfig();
  const logger = createLogger(config);
  logger.info(describeConfig(config), 'worker: settings');
  warnOfOldNode(logger, process.versions.node);
  if (config.DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set.');
  const temporalMetrics = await installTemporalRuntime(logger);
  const temporal = temporalTarget(config);
  const worker = await startWorker(
    workerOptions(config, { databaseUrl: config.DATABASE_URL, temporal, logger }),
  );
  const internal = buildInternalApp({
    logger,
    metrics: async () => `${await worker.registry.metrics()}${await temporalMetrics()}`,
    checkReady: () => worker.checkReady(),
    newRequestId,
    applications: null,
  });
  await internal.listen({ host: config.WORKER_HOST, port: config.WORKER_PORT });
  const { port } = internal.server.address() as AddressInfo;
  logger.info({ internalPort: port, temporal: temporal.connection.address }, 'worker: listening');
  const close = async () => {
    await worker.close();
    await internal.close();
  };
  runUntilSignal({ close }, logger);
}

main().catch((error: unknown) => {
  console.error(`worker: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
