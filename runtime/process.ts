import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import { ulid } from 'ulid';
import type { Sql } from '../db/postgres/connect';
import { loginRights } from '../db/postgres/rights';
import { roleOf, type Process } from '../db/postgres/roles';
import { BEAT_EVERY_MS, writeBeat, writeStop, type Beat } from '../db/processes';
import { startLoop, withTimeout } from '../timing/timing';

/**
 * Runs a process until SIGTERM or SIGINT, then closes it and exits with 0. A second signal exits at once.
 * An uncaught error exits with 1, as everything acknowledged is in Postgres. SIGHUP calls `onHangUp`.
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
    logger.fatal({ err: error, origin }, 'uncaught error');
    leave(logger, 1);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', (error) => end(error, 'unhandledRejection'));
}

/** Exits once the log is written, or after a second when its reader is blocked. */
function leave(logger: Logger, code: number): void {
  setTimeout(() => process.exit(code), 1_000).unref();
  logger.flush(() => process.exit(code));
}

export interface Closers {
  add(close: () => unknown): void;
  /**
   * Closes all that is open, the last opened first.
   * @throws the first failure, after all have been closed
   */
  close(): Promise<void>;
}

/**
 * Runs `open`, which adds a closer for each thing that it opens. When it fails, they are closed.
 * @throws what `open` throws
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
  const closers: Closers = { add: (close) => void stack.push(close), close: () => (closing ??= closeAll()) };
  try {
    return await open(closers);
  } catch (error) {
    // The caller gets the failure to open, not one to close.
    await closers.close().catch(() => undefined);
    throw error;
  }
}

/** The oldest major release of Node that gets security fixes. */
const OLDEST_SUPPORTED = 22;

/** Warns when this process runs on a Node that gets no security fixes any more. */
export function warnOfOldNode(logger: Pick<Logger, 'warn'>, version: string): void {
  if (Number(version.split('.')[0]) >= OLDEST_SUPPORTED) return;
  logger.warn({ node: version }, 'this Node is out of support and gets no security fixes: use Node 24');
}

const WHERE = 'docs/operations/production.md, "Logins of the database"';

/** Logs how the login of a process differs from what it needs; nothing while Postgres is away. */
export async function reportLogin(
  sql: Sql,
  process: Process,
  { logger, production, timeoutMs }: { logger: Logger; production: boolean; timeoutMs: number },
): Promise<void> {
  const found = await withTimeout(loginRights(sql, process), timeoutMs, 'rights of the login').catch(
    () => null,
  );
  if (found === null) return;
  const { login, enough, surplus } = found;
  if (!enough)
    logger.error(
      { login },
      `the database login may not do what this process has to: grant ${roleOf(process)} to it (${WHERE})`,
    );
  if (surplus.length > 0)
    logger[production ? 'warn' : 'info'](
      { login, surplus },
      `the database login is not separated from the other processes: ${surplus.join('; ')} (${WHERE})`,
    );
}

const BEAT_TIMEOUT_MS = 5_000;

/** What a process shows of itself, whatever it does: CPU, memory, event loop, and its build. */
export function showProcess(registry: Registry, build: string | null): void {
  collectDefaultMetrics({ register: registry });
  const help = 'Always 1; `build` is WORKER_BUILD_ID, or none.';
  const info = new Gauge({ name: 'pfqs_build_info', help, labelNames: ['build'], registers: [registry] });
  info.set({ build: build ?? 'none' }, 1);
}

/** What a worker's beat reports besides. */
interface WorkerBeat {
  readonly reachesTemporal: () => Promise<boolean>;
  /** Since when its network reaches nobody. */
  readonly cutOffSince: () => Date | null;
  /** Whether it starts deliveries, so that queues belong to it. */
  readonly starts: () => boolean;
}

/**
 * Writes every ten seconds that this process runs, for `ops status`. Without Postgres it writes nothing.
 * @returns `stop` writes that it was stopped in order; `wake` writes at once
 */
export function keepBeating(sql: Sql, about: Pick<Beat, 'kind' | 'build'>, worker?: WorkerBeat) {
  const processId = ulid();
  const host = hostname();
  const inTime = (writing: Promise<unknown>) =>
    withTimeout(writing, BEAT_TIMEOUT_MS, 'Postgres').catch(() => undefined);
  const loop = startLoop({
    round: async () => {
      const temporal = (await worker?.reachesTemporal()) ?? false;
      const seen = { cutOffSince: worker?.cutOffSince() ?? null, starts: worker?.starts() ?? false };
      await inTime(writeBeat(sql, { ...about, processId, host, temporal, ...seen }));
    },
    everyMs: BEAT_EVERY_MS,
    onError: () => undefined,
  });
  return {
    processId,
    wake: (): void => loop.wake(),
    async stop(): Promise<void> {
      await loop.stop();
      await inTime(writeStop(sql, processId));
    },
  };
}
