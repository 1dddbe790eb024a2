import type { Logger } from 'pino';
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';

/**
 * Runs a process until SIGTERM or SIGINT, then closes it and exits with 0. A second signal
 * does not wait for that, and exits with 1.
 * An uncaught error exits with 1, as everything acknowledged is in Postgres. SIGHUP calls `onHangUp`.
 */
export function runUntilSignal(
  running: { readonly close: () => Promise<void>; readonly onHangUp?: () => void },
  logger: Logger,
): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) return leave(logger, 1);
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
    logger.fatal({ err: error, origin }, 'uncaught error');
    leave(logger, 1);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', (error) => end(error, 'unhandledRejection'));
}

/** Exits once the log is written, or is killed after a second when its reader is blocked. */
function leave(logger: Logger, code: number): void {
  // process.exit() would wait for the write that the reader does not take, for ever.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1_000);
  logger.flush(() => process.exit(code));
}

/** The oldest major release of Node that gets security fixes. */
const OLDEST_SUPPORTED = 22;

/** Warns when this process runs on a Node that gets no security fixes any more. */
export function warnOfOldNode(logger: Pick<Logger, 'warn'>, version: string): void {
  if (Number(version.split('.')[0]) >= OLDEST_SUPPORTED) return;
  logger.warn({ node: version }, 'this Node is out of support and gets no security fixes: use Node 24');
}

/** What a process shows of itself, whatever it does: CPU, memory, event loop, and its build. */
export function showProcess(registry: Registry, build: string | null): void {
  collectDefaultMetrics({ register: registry });
  const help = 'Always 1; `build` is WORKER_BUILD_ID, or none.';
  const info = new Gauge({ name: 'pfqs_build_info', help, labelNames: ['build'], registers: [registry] });
  info.set({ build: build ?? 'none' }, 1);
}
