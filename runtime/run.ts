import type { Logger } from 'pino';

/**
 * Keeps a process until it is told to stop (SIGTERM, SIGINT), then closes what runs and leaves with 0. A second
 * signal leaves at once. A fault that nobody caught is logged and ends the process with 1: its supervisor starts a
 * clean one, and what was acknowledged is in Postgres.
 */
export function runUntilSignal(running: { close(): Promise<void> }, logger: Logger): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    logger.info({ signal }, 'stopping');
    running.close().then(
      () => leave(logger, 0),
      (error: unknown) => {
        logger.error({ err: error }, 'stopping failed');
        leave(logger, 1);
      },
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const end = (error: unknown, origin: string) => {
    logger.fatal({ err: error, origin }, 'a fault that nobody caught');
    leave(logger, 1);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', (error) => end(error, 'unhandledRejection'));
}

/** Exits once the log is written, or after a second: a blocked log reader must not keep a dead process. */
function leave(logger: Logger, code: number): void {
  setTimeout(() => process.exit(code), 1_000).unref();
  logger.flush(() => process.exit(code));
}
