import type { Client } from '@temporalio/client';
import { endNotification } from '../db/notifications/attempt';
import {
  claimDue,
  claimUnchecked,
  giveBack,
  markStarted,
  noteLoss,
  repairsLoss,
  restartNotification,
  sweepQueues,
  unopened,
} from '../db/notifications/claim';
import { queueName } from '../db/notifications/notification';
import type { Sql } from '../db/postgres/connect';
import { listSeats } from '../db/processes';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { keepRetentionSchedule } from '../runtime/temporal/retention-schedule';
import { inRound } from '../timing/timing';
import { startDispatcher } from './dispatcher';
import type { WorkerEmitter } from './emitter';
import type { WorkerEvents, WorkerMetrics } from './events';
import type { WorkerOptions } from './options';
import type { QueueOwners } from './queues';
import { startReconciler } from './reconciler';
import type { EndpointSpeed, FastPath } from './fast-path';
import { createDeliveryStarter, watchBuild } from './start-delivery';

const BATCH = 64;

const monotonicMs = () => performance.now();

/** Starts the loops that need Temporal, for one session: dispatcher, reconciler, and the schedule of the retention. */
export function startDispatch(
  client: Client,
  options: WorkerOptions,
  deps: {
    readonly sql: Sql;
    readonly fastPath: FastPath;
    readonly speed: EndpointSpeed;
    readonly events: WorkerEvents;
    readonly metrics: WorkerMetrics;
    readonly owners: QueueOwners;
    readonly emitter: WorkerEmitter;
  },
) {
  const { taskQueue, logger } = options;
  const { sql, fastPath, speed, events, metrics, owners, emitter } = deps;
  const repeats = repeatedWarnings(logger);

  const build = watchBuild({
    client,
    taskQueue,
    build: options.build,
    monotonicMs,
    onError: (error) => repeats.warn({ err: error }, 'Temporal could not be asked which build is current'),
  });
  const start = createDeliveryStarter({
    client,
    taskQueue,
    fastPath,
    build,
    onPath: (path) => metrics.paths.inc({ path }),
  });
  const dispatcher = startDispatcher({
    async claim(wanted) {
      const claim = await inRound(claimDue(sql, { ...wanted, slotsOf: fastPath.slotsOf }));
      // Without what is known of them, endpoints count as unknown.
      const claimedOf = new Set(claim.claimed.map(queueName));
      await inRound(speed.learn([...claimedOf])).catch((error: unknown) =>
        repeats.warn({ err: error }, 'the last attempts of endpoints could not be read'),
      );
      return claim;
    },
    async sweep(after) {
      const [seats, found] = await Promise.all([inRound(listSeats(sql)), inRound(sweepQueues(sql, after))]);
      if (owners.update(seats)) emitter.emit('changed');
      return found;
    },
    isMine: (queue) => owners.isMine(queue),
    apartMs: speed.apartMs,
    enabled: () => build.current(),
    room: () => (build.eager() ? fastPath.room() : Number.POSITIVE_INFINITY),
    markStarted: (started) => inRound(markStarted(sql, started)),
    giveBack: (claimed, pauseMs) => inRound(giveBack(sql, claimed, pauseMs)),
    start,
    onStarted: events.started,
    onError: events.dispatchFailed,
    monotonicMs,
    sweepMs: options.sweepMs,
    batch: BATCH,
  });
  const onEnded = () => dispatcher.attemptEnded();
  const onRecorded = ({ notificationId }: { readonly notificationId: string }) =>
    dispatcher.attemptEnded(notificationId);
  emitter.on('ended', onEnded).on('recorded', onRecorded);
  emitter.emit('changed');
  build.onChange((current) => {
    emitter.emit('changed');
    if (current) dispatcher.wake();
    const buildId = options.build?.buildId ?? null;
    logger.info({ current, buildId }, 'worker: whether its build is current');
  });
  const reconciler = startReconciler({
    client,
    claimUnchecked: async (wanted) => (build.current() ? inRound(claimUnchecked(sql, wanted)) : []),
    restart: (one) => inRound(restartNotification(sql, one)),
    start,
    unopened: (restarted) => inRound(unopened(sql, restarted)),
    end: async (one, state, reason) => {
      const eventType = await inRound(endNotification(sql, one, { state, reason }));
      if (eventType !== null) events.ended({ state, reason, eventType });
    },
    noteLoss: async () => {
      if (await inRound(noteLoss(sql))) events.lost();
    },
    repairsLoss: () => inRound(repairsLoss(sql)),
    onFound: events.repaired,
    onError: (error, what) => repeats.warn({ err: error }, what),
    everyMs: options.reconcileEveryMs,
    olderThanMs: options.reconcileAfterMs,
  });
  const schedule = keepRetentionSchedule(client, taskQueue, options.retentionAt, (error) =>
    logger.warn({ err: error }, 'the schedule of the retention could not be set'),
  );
  return {
    dispatcher,
    build,
    async stop() {
      emitter.off('ended', onEnded).off('recorded', onRecorded);
      await Promise.all([dispatcher.stop(), reconciler.stop(), schedule.stop(), build.stop()]);
    },
  };
}
