import type { AddressInfo } from 'node:net';
import { buildInternalApp } from '../api/internal-app';
import { describeConfig, misspelt, readConfig } from '../runtime/config/config';
import { runUntilSignal, warnOfOldNode } from '../runtime/process';
import { createLogger } from '../runtime/telemetry/logger';
import { installTemporalRuntime } from '../runtime/temporal/temporal-runtime';
import { temporalTarget } from '../runtime/temporal/temporal-target';
import { workerOptions, type WorkerTuning } from '../worker/options';
import { startWorker } from '../worker/start-worker';
import { main } from './main';

const HELP = {
  usage: 'node --require ./dist/worker/workflow-thread.cjs dist/bin/worker.js',
  purpose:
    'One worker process on an existing Postgres and Temporal: it sends the webhooks. SIGTERM stops it in order.',
};

export async function runWorker(tuning: WorkerTuning = {}): Promise<void> {
  const config = readConfig();
  const logger = createLogger(config);
  logger.info(describeConfig(config), 'worker: settings');
  for (const slip of misspelt()) logger.warn(`worker: ${slip}`);
  warnOfOldNode(logger, process.versions.node);
  if (config.DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set.');
  const temporalMetrics = await installTemporalRuntime(logger);
  const temporal = temporalTarget(config);
  const worker = await startWorker(
    workerOptions(config, { databaseUrl: config.DATABASE_URL, temporal, logger }, tuning),
  );
  const internal = buildInternalApp({
    logger,
    metrics: async () => `${await worker.registry.metrics()}${await temporalMetrics()}`,
    checkReady: () => worker.checkReady(),
    applications: null,
  });
  await internal.listen({ host: config.INTERNAL_HOST, port: config.WORKER_PORT });
  const { port } = internal.server.address() as AddressInfo;
  logger.info({ internalPort: port, temporal: temporal.connection.address }, 'worker: listening');
  const close = async () => {
    await worker.close();
    await internal.close();
  };
  runUntilSignal({ close }, logger);
}

if (require.main === module) main('worker', HELP, runWorker);
