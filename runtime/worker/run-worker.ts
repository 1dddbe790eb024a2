import type { AddressInfo } from 'node:net';
import { buildInternalApp } from '../../api/internal-app';
import { describeConfig, readConfig } from '../config/config';
import { newRequestId } from '../ids';
import { warnOfOldNode } from '../node-release';
import { runUntilSignal } from '../run';
import { createLogger } from '../telemetry/logger';
import { installTemporalRuntime } from '../temporal/temporal-runtime';
import { temporalTarget } from '../temporal/temporal-target';
import { startWorker } from './start-worker';
import { workerOptions, type WorkerTuning } from './worker-options';

/** Runs a worker process on an existing Postgres and Temporal until it is told to stop. */
export async function runWorker(tuning: WorkerTuning = {}): Promise<void> {
  const config = readConfig();
  const logger = createLogger(config);
  logger.info(describeConfig(config), 'worker: settings');
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
    newRequestId,
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
