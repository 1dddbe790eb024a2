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

export interface Closers {
  /** @param close is called once, after everything that was opened later has been closed. */
  add(close: () => unknown): void;
  /**
   * Closes what is open, the last opened first. One that fails keeps no other open.
   * @throws the first failure, after all have been closed.
   */
  close(): Promise<void>;
}

/**
 * Opens what belongs together: `open` adds a closer for each thing that it has opened. When it fails, what is open by then is
 * closed.
 * @throws what `open` throws.
 */
export async function openTogether<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const stack: (() => unknown)[] = [];
  let closing: Promise<void> | undefined;
  async function closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of stack.toReversed()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
  const closers: Closers = {
    add: (close) => void stack.push(close),
    close: () => (closing ??= closeAll()),
  };
  try {
    return await open(closers);
  } catch (error) {
    // The failure to open is what the caller has to know.
    await closers.close().catch(() => undefined);
    throw error;
  }
}

/** The oldest major release of Node that gets security fixes; 20 got its last on 30 April 2026. */
const OLDEST_SUPPORTED = 22;

/** Warns once, at the start, when this process runs on a Node that gets no security fixes any more. */
export function warnOfOldNode(logger: Pick<Logger, 'warn'>, version: string): void {
  if (Number(version.split('.')[0]) >= OLDEST_SUPPORTED) return;
  logger.warn({ node: version }, 'this Node is out of support and gets no security fixes: use Node 24');
}
