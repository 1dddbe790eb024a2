import { createServer, type AddressInfo } from 'node:net';
import { DefaultLogger, Runtime, type LogEntry } from '@temporalio/worker';
import type { Logger } from 'pino';
import { errorFacts } from '../../domain/error-facts';
import { repeatedWarnings } from '../telemetry/logger';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;
const METRICS_TIMEOUT_MS = 1_000;

/**
 * Sets up the SDK's native part, once per process and before its first use. Its log goes into ours, and
 * it handles no signals, as the dispatcher has to stop before the Temporal workers.
 * @returns its metrics (`temporal_…`) in Prometheus' text format; a comment when they cannot be read
 */
export async function installTemporalRuntime(logger: Logger): Promise<() => Promise<string>> {
  const repeats = repeatedWarnings(logger);
  const write = ({ level, message, meta }: LogEntry) => {
    const [details, text] = [{ sdk: plain(meta) }, `temporal: ${message}`];
    // A warning that names a workflow is about one delivery, and rare.
    if (LEVELS[level] === 'warn' && meta?.['workflowId'] === undefined) repeats.warn(details, text);
    else logger[LEVELS[level]](details, text);
  };
  const bindAddress = `127.0.0.1:${await freePort()}`;
  Runtime.install({
    logger: new DefaultLogger('INFO', write),
    telemetryOptions: {
      // Without this the native part writes to the console.
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      metrics: {
        attachServiceName: false,
        prometheus: {
          bindAddress,
          countersTotalSuffix: true,
          unitSuffix: true,
          useSecondsForDurations: true,
        },
      },
    },
    shutdownSignals: [],
  });
  return async () => {
    try {
      const signal = AbortSignal.timeout(METRICS_TIMEOUT_MS);
      return await (await fetch(`http://${bindAddress}/metrics`, { signal })).text();
    } catch (error) {
      logger.warn({ err: error }, "the metrics of Temporal's SDK could not be read");
      return '# the metrics of the Temporal SDK could not be read\n';
    }
  };
}

/** The native part does not report which port it got for 0, so it is given one. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function plain(meta: LogEntry['meta']): Record<string, unknown> {
  const { taskQueue, workflowId, activityType, attempt, error } = meta ?? {};
  const err = error === undefined ? undefined : errorFacts(error);
  return { taskQueue, workflowId, activityType, attempt, err };
}
