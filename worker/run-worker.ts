import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { describeConfig, readConfig } from '../runtime/config/config';
import { warnOfOldNode, runUntilSignal } from '../runtime/process';
import { createLogger } from '../runtime/telemetry/logger';
import { installTemporalRuntime } from '../runtime/temporal/temporal-runtime';
import { temporalTarget } from '../runtime/temporal/temporal-target';
import { workerOptions, type WorkerTuning } from './options';
import { startWorker } from './start-worker';

/** Builds a listener for health, readiness and metrics (api/internal-app). */
export type BuildListener = (parts: {
  readonly logger: Logger;
  readonly metrics: () => Promise<string>;
  readonly checkReady: () => Promise<void>;
  readonly applications: null;
}) => FastifyInstance;

/** Runs a worker process on an existing Postgres and Temporal until a signal stops it. */
export async function runWorker(buildListener: BuildListener, tuning: WorkerTuning = {}): Promise<void> {
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
  const internal = buildListener({
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
