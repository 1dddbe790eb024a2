import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';
import type { Sql } from '../db/postgres/connect';
import {
  claimDue,
  claimUnchecked,
  giveBack,
  markStarted,
  restartNotification,
} from '../db/notifications/claim';
import { endNotification } from '../db/notifications/attempt';
import { ROUND_TIMEOUT_MS } from '../timing/loop';
import { withTimeout } from '../timing/timeout';
import { watchBuild, type BuildWatch } from './build-watch';
import { createDeliveryStarter } from './delivery-starter';
import { startDispatcher, type Dispatcher } from './dispatcher';
import type { FastPath } from './fast-path';
import { startReconciler } from './reconciler';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { keepRetentionSchedule } from '../runtime/temporal/retention-schedule';
import type { WorkerEvents } from './events';
import type { WorkerMetrics } from './metrics';
import type { WorkerSessionOptions } from './session';

/** Most workflows that are being started at once. */
const BATCH = 64;

export interface WorkerDispatchOptions {
  readonly taskQueue: string;
  readonly ladderFor: (eventType: string) => readonly number[];
  readonly logger: Logger;
  /** Longest time until a row that was not heard of is found. */
  readonly sweepMs: number;
  readonly reconcile: { readonly everyMs: number; readonly olderThanMs: number };
  readonly retentionAt: string;
  readonly version: NonNullable<WorkerSessionOptions['version']> | null;
}

export interface WorkerDispatchDeps {
  readonly sql: Sql;
  readonly fastPath: FastPath;
  readonly events: WorkerEvents;
  readonly metrics: Pick<WorkerMetrics, 'paths'>;
  /** Called when an attempt has been recorded here, or a notification has ended without one. */
  readonly attemptEnds: Set<Dispatcher['attemptEnded']>;
}

/** What a worker does of its own accord while it is connected to Temporal. */
export interface WorkerDispatch {
  readonly dispatcher: Dispatcher;
  readonly build: BuildWatch;
  stop(): Promise<void>;
}

/** Starts what turns rows into workflows and holds the two against each other, on a worker's own connection. */
export function startWorkerDispatch(
  client: Client,
  options: WorkerDispatchOptions,
  { sql, fastPath, events, metrics, attemptEnds }: WorkerDispatchDeps,
): WorkerDispatch {
  const { taskQueue, logger, ladderFor } = options;
  const monotonicMs = () => performance.now();
  const repeats = repeatedWarnings(logger);
  const build = watchBuild({
    client,
    taskQueue,
    build: options.version,
    monotonicMs,
    onError: (error) => repeats.warn({ err: error }, 'which build is current cannot be asked for now'),
  });
  const dispatcher = startDispatcher({
    claim: async (wanted) =>
      build.current()
        ? withTimeout(claimDue(sql, { ...wanted, slots: SENDS_PER_ENDPOINT }), ROUND_TIMEOUT_MS, 'claim')
        : { claimed: [], waiting: false, contended: false, turn: wanted.turn },
    markStarted: (started) => withTimeout(markStarted(sql, started), ROUND_TIMEOUT_MS, 'mark started'),
    giveBack: (claimed, pauseMs) =>
      withTimeout(giveBack(sql, claimed, pauseMs), ROUND_TIMEOUT_MS, 'give back'),
    start: createDeliveryStarter({
      client,
      taskQueue,
      ladderFor,
      fastPath,
      build,
      onPath: (path) => metrics.paths.inc({ path }),
    }),
    onStarted: events.started,
    onError: events.dispatchFailed,
    monotonicMs,
    sweepMs: options.sweepMs,
    batch: BATCH,
  });
  attemptEnds.add(dispatcher.attemptEnded);
  build.onChange((current) => {
    if (current) dispatcher.wake();
    const buildId = options.version?.buildId ?? null;
    logger.info({ current, buildId }, 'worker: whether its build is current');
  });
  const reconciler = startReconciler({
    client,
    claimUnchecked: (wanted) => withTimeout(claimUnchecked(sql, wanted), ROUND_TIMEOUT_MS, 'reconciler'),
    restart: (one) => withTimeout(restartNotification(sql, one), ROUND_TIMEOUT_MS, 'reconciler'),
    end: async (one, state, reason) => {
      const eventType = await withTimeout(
        endNotification(sql, one, { state, reason }),
        ROUND_TIMEOUT_MS,
        'reconciler',
      );
      if (eventType !== null) events.ended({ state, reason, eventType });
    },
    onFound: (one, what) => events.mended({ ...one }, what),
    onError: (error, what) => repeats.warn({ err: error }, what),
    ...options.reconcile,
  });
  const schedule = keepRetentionSchedule(client, taskQueue, options.retentionAt, (error) =>
    logger.warn({ err: error }, 'the schedule of the retention could not be set'),
  );
  return {
    dispatcher,
    build,
    async stop() {
      attemptEnds.delete(dispatcher.attemptEnded);
      await Promise.all([dispatcher.stop(), reconciler.stop(), schedule.stop(), build.stop()]);
    },
  };
}
