import type { Registry } from 'prom-client';
import { createActivities, createSendSlots, type SendWebhook } from '../activities';
import { createRetentionActivities } from '../activities/remove-expired';
import { openChangeFeed } from '../db/postgres/change-feed';
import { connectDatabase } from '../db/postgres/connect';
import { withTimeout } from '../timing/timeout';
import { databaseFigures, backlog, deliveryFigures } from '../db/figures';
import { differentFunctions } from '../db/postgres/functions';
import { keepPartitionsAhead } from '../db/postgres/partitions';
import type { KeyRing } from '../db/endpoints/key-ring';
import { readTrace, NOTIFICATIONS_CHANNEL } from '../db/notifications/notification';
import { endpointHistory } from '../db/endpoints/attempts';
import { createEndpointSpeed } from './endpoint-speed';
import { createFastPath } from './fast-path';
import { ENDPOINTS_CHANNEL } from '../db/endpoints/endpoints';
import { signEd25519, hmacSha256 } from '../outbound/signing';
import { createClockWatch, heardBy } from './clock-watch';
import { createFigureMetrics } from '../runtime/telemetry/figure-metrics';
import { reportLogin } from '../runtime/telemetry/report-login';
import { createSupplyMetrics } from '../runtime/telemetry/supply-metrics';
import { keepConnected } from './connection';
import { startWorkerDispatch, type WorkerDispatchDeps, type WorkerDispatchOptions } from './dispatch';
import { createWorkerEvents } from './events';
import { createWorkerGauges, createWorkerMetrics } from './metrics';
import { startWorkerKeeper } from './keeper';
import { startWorkerRecoverer } from './recoverer';
import { startWorkerOverdueEvents } from './overdue-events';
import type { WorkerSessionOptions } from './session';
import { openTogether, type Closers } from '../runtime/process';
import type { TemporalTarget } from '../runtime/temporal/temporal-target';
import type { Tracing } from '../runtime/telemetry/tracing';

/** Of what the retention removes; a count of a large month takes seconds. */
const RETENTION_STATEMENT_MS = 120_000;

export interface WorkerProcessOptions extends WorkerDispatchOptions {
  readonly databaseUrl: string;
  readonly databaseListenUrl: string;
  readonly databasePoolSize: number;
  readonly databaseTimeoutMs: number;
  readonly temporal: TemporalTarget;
  readonly workflows: WorkerSessionOptions['workflows'];
  readonly keyRing: KeyRing;
  readonly send: SendWebhook;
  readonly mostSends: number;
  readonly mostWorkflowTasks: number;
  /** By the setting ENVIRONMENT. */
  readonly production: boolean;
  /** Null or absent: no traces are made. */
  readonly tracing?: Tracing | null;
  /** An API in the same process shows the process' own metrics (CPU, memory, event loop). Default: false. */
  readonly besideApi?: boolean;
}

export interface WorkerProcess {
  readonly registry: Registry;
  /** @throws saying what is missing: Postgres, Temporal, its namespace or a search attribute. */
  checkReady(): Promise<void>;
  /** Starts nothing more, finishes what is under way, then lets go of Temporal and Postgres. */
  close(): Promise<void>;
}

/**
 * Starts one worker process: the dispatcher, the reconciler, the keeper of what is held, the loops for overdue lender events and for
 * partners' recoveries, and both Temporal workers. It comes up without Temporal, and keeps trying: until then rows wait in Postgres.
 */
export async function startWorker(options: WorkerProcessOptions): Promise<WorkerProcess> {
  return openTogether(async (closers) => start(options, closers));
}

function start(options: WorkerProcessOptions, closers: Closers): WorkerProcess {
  const { logger, tracing = null } = options;
  const monotonicMs = () => performance.now();
  const shared = {
    url: options.databaseUrl,
    applicationName: 'pfqs worker',
    statementTimeoutMs: options.databaseTimeoutMs,
  };
  const forPrepared = Math.ceil(options.databasePoolSize / 2);
  const database = connectDatabase({ ...shared, poolSize: options.databasePoolSize - forPrepared });
  const prepared = connectDatabase({ ...shared, poolSize: forPrepared, plannedOnce: true });
  closers.add(() => Promise.all([database.close(), prepared.close(), tracing?.close()]));
  const { db } = database;
  const { sql } = prepared;
  const clock = createClockWatch({
    monotonicMs,
    onSkew: (skewMs, endpoints) =>
      logger.warn(
        { skewSeconds: Math.round(skewMs / 1_000), endpoints },
        'the clock of this machine is wrong: receivers refuse signatures that are some minutes off',
      ),
  });
  const metrics = createWorkerMetrics({ ofProcess: options.besideApi !== true });
  const { registry } = metrics;
  createFigureMetrics(registry, () => deliveryFigures(sql));
  createSupplyMetrics(registry, () => databaseFigures(db), options.temporal);
  const events = createWorkerEvents({ logger, metrics, tracing, readTrace: (id) => readTrace(db, id) });
  const sendSlots = createSendSlots({
    slots: options.mostSends,
    monotonicMs,
    random: Math.random,
    onBusy: () => metrics.busy.inc(),
  });
  const speed = createEndpointSpeed({
    recall: (of) => endpointHistory(db, of),
    onError: (error) => logger.warn({ err: error }, 'how fast an endpoint has been cannot be read for now'),
  });
  const fastPath = createFastPath({ speed, slots: Math.floor(options.mostWorkflowTasks / 2), monotonicMs });
  const attemptEnds: WorkerDispatchDeps['attemptEnds'] = new Set();
  const activities = createActivities({
    sql,
    fastPath,
    keyRing: options.keyRing,
    send: heardBy(clock, options.send),
    hmac: hmacSha256,
    sign: signEd25519,
    sendSlots,
    now: () => new Date(),
    monotonicMs,
    warn: events.warn,
    onEnd: (end) => {
      events.ended(end);
      for (const attemptEnded of attemptEnds) attemptEnded();
    },
    onRecorded: (attempt, ms) => {
      events.recorded(attempt, ms);
      for (const attemptEnded of attemptEnds) attemptEnded(attempt.notificationId);
    },
    onAttempt: (outcome, to) => {
      events.attempted(outcome, to);
      speed.observe(to, { outcome: outcome.kind, durationMs: outcome.durationMs });
    },
  });
  const retention = createRetentionActivities({
    warn: events.warn,
    onMuch: (kind, rows) => metrics.removedMuch.inc({ kind }, rows),
    connect: () =>
      connectDatabase({
        url: options.databaseUrl,
        poolSize: 1,
        applicationName: 'pfqs retention',
        statementTimeoutMs: RETENTION_STATEMENT_MS,
      }),
  });

  const connection = keepConnected({
    session: {
      ...options,
      ...options.temporal,
      activities: { ...activities, records: { ...activities.records, ...retention } },
    },
    startDispatch: ({ client }) =>
      startWorkerDispatch(client, options, { sql, fastPath, events, metrics, attemptEnds }),
    logger,
  });
  closers.add(() => connection.close());
  createWorkerGauges(registry, {
    backlog: () => backlog(sql),
    clockSkewMs: () => clock.skewMs(),
    underWay: () => sendSlots.underWay(),
    buildIsCurrent: () => connection.dispatch()?.build.current() ?? false,
    mostSends: options.mostSends,
  });
  const { everyMs } = options.reconcile;
  const keeper = startWorkerKeeper({ db, logger, registry, everyMs });
  const overdueEvents = startWorkerOverdueEvents({ db, logger, registry, everyMs });
  const partitions = keepPartitionsAhead(database.sql, (error) => logger.error({ err: error }, 'partitions'));
  closers.add(() => partitions.stop());
  const { production, databaseTimeoutMs: timeoutMs } = options;
  void reportLogin(database.sql, 'worker', { logger, production, timeoutMs });
  const recoverer = startWorkerRecoverer({ db, logger, everyMs });
  // Nothing new is started while the workers finish.
  closers.add(() =>
    Promise.all([connection.stopStarting(), keeper.stop(), overdueEvents.stop(), recoverer.stop()]),
  );
  const feed = openChangeFeed({
    database: { url: options.databaseListenUrl, applicationName: 'pfqs worker' },
    channels: [NOTIFICATIONS_CHANNEL, ENDPOINTS_CHANNEL],
    onConnect: async () => {
      connection.dispatch()?.dispatcher.wake();
      keeper.wake();
    },
    onChange(subject, channel) {
      if (channel === ENDPOINTS_CHANNEL) keeper.wake();
      else if (subject.startsWith('rcv_')) recoverer.wake();
      else connection.dispatch()?.dispatcher.wake();
    },
    onError: (error) =>
      logger.warn({ err: error }, 'the dispatcher hears nothing for now, and sweeps instead'),
    monotonicMs,
  });
  closers.add(() => feed.close());

  return {
    registry,
    async checkReady() {
      await withTimeout(sql`select 1`, 1_000, 'readiness');
      const different = await differentFunctions(sql);
      if (different.length > 0)
        throw new Error(`the database has not this build's ${different.join(', ')}: run migrate`);
      await connection.checkReady();
    },
    close: () => closers.close(),
  };
}
