import type { Logger } from 'pino';

/**
 * Keeps a process until it is told to stop (SIGTERM, SIGINT), then closes what runs and leaves with 0. A second signal
 * leaves at once. A fault that nobody caught ends the process with 1: its supervisor starts a clean one, and what was
 * acknowledged is in Postgres. SIGHUP, which ends a process that does not listen for it, does what `onHangUp` does, or nothing.
 */
export function runUntilSignal(
  running: { readonly close: () => Promise<void>; readonly onHangUp?: () => void },
  logger: Logger,
): void {
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
  process.on('SIGHUP', () => {
    try {
      running.onHangUp?.();
      logger.info(
        running.onHangUp === undefined ? 'SIGHUP: nothing to do' : 'SIGHUP: the certificate was read again',
      );
    } catch (error) {
      logger.error({ err: error }, 'SIGHUP: the certificate cannot be used; the one before stays');
    }
  });
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
