import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import { createActivities } from '../activities';
import { watchRefusals } from '../activities/refusals';
import { appendOperatorEvents } from '../db/audit/operator-events';
import { lastPaces } from '../db/endpoints/attempts';
import { ENDPOINTS_CHANNEL } from '../db/endpoints/endpoints';
import { endNotification } from '../db/notifications/attempt';
import {
  claimDue,
  claimUnchecked,
  giveBack,
  markStarted,
  restartNotification,
  sweepQueues,
  unopened,
} from '../db/notifications/claim';
import {
  NOTIFICATIONS_CHANNEL,
  queueName,
  readTrace,
  SOMETHING_IS_DUE,
} from '../db/notifications/notification';
import { openChangeFeed } from '../db/postgres/change-feed';
import { connectDatabase, type Sql } from '../db/postgres/connect';
import { listSeats, noteNetworkOutage } from '../db/processes';
import { differentFunctions, keepPartitionsAhead } from '../db/postgres/migrate';
import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';
import { describeOperatorEvent } from '../domain/operator-event';
import { hmacSha256, signEd25519 } from '../outbound/sender';
import { keepBeating, openTogether, type Closers, reportLogin } from '../runtime/process';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { keepRetentionSchedule } from '../runtime/temporal/retention-schedule';
import { inRound, withTimeout } from '../timing/timing';
import { startDispatcher } from './dispatcher';
import {
  createClockWatch,
  createWorkerEvents,
  createWorkerMetrics,
  type WorkerEvents,
  type WorkerMetrics,
} from './events';
import { createWorkerGauges } from './gauges';
import { startWorkerKeeper } from './keeper';
import type { WorkerOptions } from './options';
import { startWorkerOverdueEvents } from './overdue-events';
import { startReconciler } from './reconciler';
import { startWorkerRecoverer } from './recoverer';
import { keepSession } from './session';
import { createQueueOwners, type QueueOwners } from './queues';
import { createReach } from './reach';
import {
  createEndpointSpeed,
  createFastPath,
  createSendSlots,
  type EndpointSpeed,
  type FastPath,
} from './slots';
import { createDeliveryStarter, watchBuild } from './start-delivery';

const BATCH = 64;
/** The count of a large month takes seconds, so a statement may take two minutes. */
const RETENTION = { applicationName: 'pfqs retention', poolSize: 1, statementTimeoutMs: 120_000 };

/** Starts a worker. It keeps trying to reach Temporal; rows wait in Postgres until then. */
export async function startWorker(options: WorkerOptions) {
  return openTogether(async (closers) => start(options, closers));
}

function start(options: WorkerOptions, closers: Closers) {
  const { logger, tracing, databaseUrl, databasePoolSize, databaseTimeoutMs } = options;

  const pool = { url: databaseUrl, applicationName: 'pfqs worker', statementTimeoutMs: databaseTimeoutMs };
  const forPrepared = Math.ceil(databasePoolSize / 2);
  const database = connectDatabase({ ...pool, poolSize: databasePoolSize - forPrepared });
  const prepared = connectDatabase({ ...pool, poolSize: forPrepared, plannedOnce: true });
  closers.add(() => Promise.all([database.close(), prepared.close(), tracing?.close()]));
  const { db } = database;
  const { sql } = prepared;

  const build = options.build?.buildId ?? null;
  const metrics = createWorkerMetrics({ build, besideApi: options.besideApi });
  const events = createWorkerEvents({ logger, metrics, tracing, readTrace: (id) => readTrace(db, id) });
  const clock = createClockWatch({
    monotonicMs,
    onSkew: (skewMs, endpoints) =>
      logger.warn(
        { skewSeconds: Math.round(skewMs / 1_000), endpoints },
        'the clock of this machine is wrong: receivers refuse signatures that are some minutes off',
      ),
  });
  const speed = createEndpointSpeed((queues) => lastPaces(sql, queues));

  const fastPath = createFastPath({ speed, slots: options.fastSlots, monotonicMs });
  const sendSlots = createSendSlots({
    slots: options.mostSends,
    monotonicMs,
    random: Math.random,
    onBusy: () => metrics.busy.inc(),
  });
  const reach = createReach({
    probe: options.probe,
    tryEveryMs: options.tryEveryMs,
    monotonicMs,
    nowMs: Date.now,
    onBegin: (outage) => void noteReach('network_cut_off', { ...outage }),
    onEnd: (outage) => void noteReach('network_back', { ...outage }, noteNetworkOutage(sql, outage)),
  });
  async function noteReach(
    kind: 'network_cut_off' | 'network_back',
    { since, until, endpoints }: { since: Date; until?: Date; endpoints: number },
    noting?: Promise<unknown>,
  ): Promise<void> {
    const minute = (at?: Date) => at && `${at.toISOString().slice(0, 16)}Z`;
    const details = { host: hostname(), since: minute(since), until: minute(until), endpoints };
    const event = { kind, partnerId: null, environment: null, endpointId: null, details };
    logger.warn({ kind, ...details }, describeOperatorEvent(kind, details));
    beat.wake();
    await Promise.all([noting, appendOperatorEvents(db, [event])]).catch((error: unknown) =>
      logger.error({ err: error }, 'an outage of the network was not noted'),
    );
  }
  const activities = createActivities({
    sql,
    ladders: options.ladders,
    fastPath,
    keyRing: options.keyRing,
    send: clock.observed(options.send),
    hmac: hmacSha256,
    sign: signEd25519,
    sendSlots,
    reach,
    mostBusyRounds: options.mostBusyRounds,
    refusals: watchRefusals(() => metrics.openingsRefused.inc()),
    onRequeued: (ref) => events.requeued({ ...ref }),
    now: () => new Date(),
    monotonicMs,
    warn: events.warn,
    onEnd: (end) => {
      events.ended(end);
      session.dispatch()?.dispatcher.attemptEnded();
    },
    onRecorded: (attempt, ms) => {
      events.recorded(attempt, ms);
      session.dispatch()?.dispatcher.attemptEnded(attempt.notificationId);
    },
    onAttempt: (outcome, to) => {
      events.attempted(outcome, to);
      if (outcome.kind !== 'ours')
        speed.observe(to, { outcome: outcome.kind, durationMs: outcome.durationMs });
    },
    onRemovedMuch: (kind, rows) => metrics.removedMuch.inc({ kind }, rows),
    connectForRetention: () => connectDatabase({ url: databaseUrl, ...RETENTION }),
  });

  const session = keepSession(options, activities, (client) =>
    startDispatch(client, options, {
      sql,
      fastPath,
      speed,
      events,
      metrics,
      owners,
      announce: () => beat.wake(),
    }),
  );
  closers.add(() => session.close());

  const reachesTemporal = () =>
    session.checkReady().then(
      () => true,
      () => false,
    );
  const beat = keepBeating(
    database.sql,
    { kind: 'worker', build },
    {
      reachesTemporal,
      cutOffSince: () => reach.cutOffSince(),
      starts: () => session.dispatch()?.build.current() ?? false,
    },
  );
  const owners = createQueueOwners(beat.processId);
  closers.add(() => beat.stop());

  const loopOptions = { db, logger, metrics, everyMs: options.reconcileEveryMs };
  const keeper = startWorkerKeeper(loopOptions);
  const overdueEvents = startWorkerOverdueEvents(loopOptions);
  const recoverer = startWorkerRecoverer(loopOptions);
  const partitions = keepPartitionsAhead(database.sql, (error) => logger.error({ err: error }, 'partitions'));
  closers.add(() => partitions.stop());
  // No delivery is started while the Temporal workers finish.
  closers.add(() => {
    session.stopOpening();
    const starting = [session.dispatch()?.dispatcher, keeper, overdueEvents, recoverer];
    return Promise.all(starting.map(async (one) => one?.stop()));
  });
  const feed = openChangeFeed({
    database: { url: options.databaseListenUrl, applicationName: 'pfqs worker' },
    channels: [NOTIFICATIONS_CHANNEL, ENDPOINTS_CHANNEL],
    onConnect: async () => {
      session.dispatch()?.dispatcher.wake();
      keeper.wake();
    },
    onChange(subject, channel) {
      if (channel === ENDPOINTS_CHANNEL) keeper.wake();
      else if (subject.startsWith('rcv_')) recoverer.wake();
      else if (subject === SOMETHING_IS_DUE.payload) session.dispatch()?.dispatcher.wake();
      else session.dispatch()?.dispatcher.hear(subject);
    },
    onError: (error) =>
      logger.warn({ err: error }, 'the change feed is not connected: the dispatcher sweeps instead'),
    monotonicMs,
  });
  closers.add(() => feed.close());

  createWorkerGauges(metrics.registry, {
    db,
    sql,
    temporal: options.temporal,
    mostSends: options.mostSends,
    underWay: () => sendSlots.underWay(),
    clockSkewMs: () => clock.skewMs(),
    cutOffSince: () => reach.cutOffSince(),
    buildIsCurrent: () => session.dispatch()?.build.current() ?? false,
  });
  const { production } = options;
  void reportLogin(database.sql, 'worker', { logger, production, timeoutMs: databaseTimeoutMs });
  return {
    registry: metrics.registry,
    /** @throws naming what is missing: Postgres, Temporal, its namespace or a search attribute. */
    async checkReady(): Promise<void> {
      await withTimeout(sql`select 1`, 1_000, 'Postgres');
      const different = await differentFunctions(sql);
      if (different.length > 0)
        throw new Error(
          `functions of the database are not those of this build (${different.join(', ')}): run migrate`,
        );
      await session.checkReady();
    },
    close: (): Promise<void> => closers.close(),
  };
}

const monotonicMs = () => performance.now();

function startDispatch(
  client: Client,
  options: WorkerOptions,
  deps: {
    readonly sql: Sql;
    readonly fastPath: FastPath;
    readonly speed: EndpointSpeed;
    readonly events: WorkerEvents;
    readonly metrics: WorkerMetrics;
    readonly owners: QueueOwners;
    /** Has the table of processes say at once whether deliveries start here. */
    readonly announce: () => void;
  },
) {
  const { taskQueue, logger } = options;
  const { sql, fastPath, speed, events, metrics, owners, announce } = deps;
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
      const claim = await inRound(claimDue(sql, { ...wanted, slots: SENDS_PER_ENDPOINT }));
      // Without what is known of them, endpoints count as unknown.
      const claimedOf = new Set(claim.claimed.map(queueName));
      await inRound(speed.learn([...claimedOf])).catch((error: unknown) =>
        repeats.warn({ err: error }, 'the last attempts of endpoints could not be read'),
      );
      return claim;
    },
    async sweep(after) {
      const [seats, found] = await Promise.all([inRound(listSeats(sql)), inRound(sweepQueues(sql, after))]);
      if (owners.update(seats).shared) announce();
      return found;
    },
    isMine: (queue) => owners.isMine(queue),
    enabled: () => build.current(),
    markStarted: (started) => inRound(markStarted(sql, started)),
    giveBack: (claimed, pauseMs) => inRound(giveBack(sql, claimed, pauseMs)),
    start,
    onStarted: events.started,
    onError: events.dispatchFailed,
    monotonicMs,
    sweepMs: options.sweepMs,
    batch: BATCH,
  });
  announce();
  build.onChange((current) => {
    announce();
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
    onFound: (one, what) => events.repaired({ ...one }, what),
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
      await Promise.all([dispatcher.stop(), reconciler.stop(), schedule.stop(), build.stop()]);
    },
  };
}
