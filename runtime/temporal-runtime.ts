import { DefaultLogger, Runtime, type LogEntry } from '@temporalio/worker';
import type { Logger } from 'pino';

/** Levels of the SDK as those of ours. */
const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/**
 * Sets up the SDK's native part, once per process and before anything of it is used: its log goes into ours (its news
 * are our details), and signals stay with us, who stop the dispatcher before the workers.
 */
export function installTemporalRuntime(logger: Logger): void {
  const write = ({ level, message, meta }: LogEntry) =>
    logger[LEVELS[level]]({ sdk: plain(meta) }, `temporal: ${message}`);
  Runtime.install({
    logger: new DefaultLogger('INFO', write),
    // Else the native part would write to the console.
    telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
    shutdownSignals: [],
  });
}

/** What of the SDK's details is worth a line; its objects are large. */
function plain(meta: LogEntry['meta']): Record<string, unknown> {
  const { taskQueue, workflowId, activityType, attempt, error } = meta ?? {};
  return { taskQueue, workflowId, activityType, attempt, ...(error !== undefined && { err: error }) };
}
