import { EventEmitter } from 'node:events';
import { ulid } from 'ulid';
import { createActivities } from '../activities';
import { watchRefusals } from '../activities/refusals';
import { lastPaces } from '../db/endpoints/attempts';
import { faultOfKeyRing } from '../db/endpoints/sealed-rows';
import { ENDPOINTS_CHANNEL } from '../db/endpoints/endpoints';
import { NOTIFICATIONS_CHANNEL, readTrace, SOMETHING_IS_DUE } from '../db/notifications/notification';
import { openChangeFeed } from '../db/postgres/change-feed';
import { checkSession, connectDatabase } from '../db/postgres/connect';
import { differentFunctions, keepPartitionsAhead } from '../db/postgres/migrate';
import { hmacSha256, signEd25519 } from '../outbound/sender';
import { keepBeating } from '../runtime/beat';
import { reportLogin } from '../runtime/login';
import { certificateEnds } from '../runtime/temporal/temporal-target';
import { openTogether, type Closers } from '../runtime/closers';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { createClockWatch } from './clock-watch';
import { startDispatch } from './dispatch';
import type { WorkerEmitter } from './emitter';
import { createWorkerEvents, createWorkerMetrics } from './events';
import { createWorkerGauges, startFigures } from './gauges';
import { startWorkerKeeper } from './keeper';
import type { WorkerOptions } from './options';
import { createOutageNotes } from './outage-notes';
import { startWorkerOverdueEvents } from './overdue-events';
import { watchOwnDelay } from './own-delay';
import { createQueueOwners } from './queues';
import { createReach } from './reach';
import { startWorkerRecoverer } from './recoverer';
import { keepSession } from './session';
import { createSendSlots } from './slots';
import { createEndpointSpeed, createFastPath } from './fast-path';

/** The count of a large month takes seconds, so a statement may take two minutes. */
const RETENTION = { applicationName: 'pfqs retention', poolSize: 1, statementTimeoutMs: 120_000 };
/** It costs Postgres a tenth of a second where 10,000 endpoints are registered. */
const RING_FITS_FOR_MS = 30_000;

const monotonicMs = () => performance.now();

/** Starts a worker. It keeps trying to reach Temporal; rows wait in Postgres until then. */
export async function startWorker(options: WorkerOptions) {
  return openTogether(async (closers) => start(options, closers));
}

/** Each part gets only parts that were made before it. What later parts want to know goes through `emitter`. */
function start(options: WorkerOptions, closers: Closers) {
  const { logger, tracing, databaseUrl, databaseTimeoutMs } = options;
  const build = options.build?.buildId ?? null;
  const processId = ulid();
  const emitter: WorkerEmitter = new EventEmitter();

  const { database, sql } = connectPools(options, closers);
  const { db } = database;
  const metrics = createWorkerMetrics({ build, besideApi: options.besideApi });
  const events = createWorkerEvents({ logger, metrics, tracing, readTrace: (id) => readTrace(db, id) });
  const ownDelay = watchOwnDelay(monotonicMs);
  closers.add(() => ownDelay.stop());
  const speed = createEndpointSpeed((queues) => lastPaces(sql, queues), ownDelay.ofAttempt);
  emitter.on('ended', events.ended).on('recorded', events.recorded).on('requeued', events.requeued);
  emitter.on('attempted', events.attempted).on('attempted', (outcome, attempt) => {
    if (outcome.kind !== 'ours')
      speed.observe(attempt, { outcome: outcome.kind, durationMs: outcome.durationMs });
  });

  const clock = createClockWatch({ monotonicMs, onSkew: events.clockIsWrong });
  const fastPath = createFastPath({
    speed,
    slots: options.fastSlots,
    mostPerEndpoint: options.fastSlotsPerEndpoint,
    monotonicMs,
    ownDelayMs: ownDelay.ofAttempt,
  });
  const sendSlots = createSendSlots({
    slots: options.mostSends,
    monotonicMs,
    random: Math.random,
    onBusy: () => metrics.busy.inc(),
  });
  const outages = createOutageNotes({ db, sql, logger });
  const reach = createReach({
    probe: options.probe,
    tryEveryMs: options.tryEveryMs,
    monotonicMs,
    nowMs: Date.now,
    onBegin: (outage) => {
      outages.began(outage);
      emitter.emit('changed');
    },
    onEnd: (outage) => {
      outages.ended(outage);
      emitter.emit('changed');
    },
  });
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
    now: () => new Date(),
    monotonicMs,
    warn: events.warn,
    onRequeued: (notification) => emitter.emit('requeued', notification),
    onEnd: (end) => emitter.emit('ended', end),
    onRecorded: (attempt, durationMs) => emitter.emit('recorded', attempt, durationMs),
    onAttempt: (outcome, attempt) => emitter.emit('attempted', outcome, attempt),
    onRemovedMuch: (kind, rows) => metrics.removedMuch.inc({ kind }, rows),
    connectForRetention: () => connectDatabase({ url: databaseUrl, ...RETENTION }),
  });

  const owners = createQueueOwners(processId);
  const session = keepSession(options, activities, (client) =>
    startDispatch(client, options, { sql, fastPath, speed, events, metrics, owners, emitter }),
  );
  closers.add(() => session.close());
  const buildIsCurrent = () => session.dispatch()?.build.current() ?? false;
  const cutOffSince = () => reach.cutOffSince();
  const reachesTemporal = () =>
    session.checkReady().then(
      () => true,
      () => false,
    );
  const about = { processId, kind: 'worker', build } as const;
  let ringFitsFromMs = Number.NEGATIVE_INFINITY;
  /**
   * @param ringFitsForMs how long a key ring that fitted is not looked at again; ops may use another key meanwhile
   * @returns why this worker cannot do all of its work; null when it can
   */
  async function unfitBecause(ringFitsForMs: number): Promise<string | null> {
    const different = await differentFunctions(sql);
    if (different.length > 0)
      return `the functions of the database are not those of this build (${different.join(', ')}): run migrate`;
    // Looked at until it fits: a release with another key must not take the place of workers that can sign.
    const nowMs = monotonicMs();
    if (nowMs - ringFitsFromMs < ringFitsForMs) return null;
    const fault = await faultOfKeyRing(sql, options.keyRing);
    if (fault !== null) return `WEBHOOK_KEYS: ${fault}`;
    ringFitsFromMs = nowMs;
    return null;
  }
  const beat = keepBeating(database.sql, about, {
    trouble: async () =>
      (await unfitBecause(RING_FITS_FOR_MS)) ?? certificateEnds(options.temporal, Date.now()),
    worker: { reachesTemporal, cutOffSince, starts: buildIsCurrent },
  });
  emitter.on('changed', () => beat.wake());
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
  const repeats = repeatedWarnings(logger);
  const feed = openChangeFeed({
    database: { url: options.databaseUrl, applicationName: 'pfqs worker' },
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
      repeats.warn({ err: error }, 'the change feed is not connected: the dispatcher sweeps instead'),
    monotonicMs,
  });
  closers.add(() => feed.close());

  const figures = startFigures(db, options.figuresEveryMs, (error) =>
    repeats.warn({ err: error }, 'figures could not be counted'),
  );
  closers.add(() => figures.stop());
  createWorkerGauges(metrics.registry, {
    sql,
    temporal: options.temporal,
    mostSends: options.mostSends,
    underWay: () => sendSlots.underWay(),
    clockSkewMs: () => clock.skewMs(),
    cutOffSince,
    buildIsCurrent,
  });
  const { production } = options;
  void reportLogin(database.sql, 'worker', { logger, production, timeoutMs: databaseTimeoutMs });
  return {
    registry: metrics.registry,
    /** @throws naming what is missing: Postgres, a key, Temporal, its namespace or a search attribute. */
    async checkReady(): Promise<void> {
      await checkSession(sql, 1_000);
      const unfit = await unfitBecause(Number.POSITIVE_INFINITY);
      if (unfit !== null) {
        repeats.error({}, `worker: not ready: ${unfit}`);
        throw new Error(unfit);
      }
      await session.checkReady();
    },
    close: (): Promise<void> => closers.close(),
  };
}

/** Half of the connections are for statements that Postgres plans once. */
function connectPools(
  { databaseUrl, databasePoolSize, databaseTimeoutMs, tracing }: WorkerOptions,
  closers: Closers,
) {
  const pool = { url: databaseUrl, applicationName: 'pfqs worker', statementTimeoutMs: databaseTimeoutMs };
  const forPrepared = Math.ceil(databasePoolSize / 2);
  const database = connectDatabase({ ...pool, poolSize: databasePoolSize - forPrepared });
  const prepared = connectDatabase({ ...pool, poolSize: forPrepared, byIndex: true });
  closers.add(() => Promise.all([database.close(), prepared.close(), tracing?.close()]));
  return { database, sql: prepared.sql };
}
