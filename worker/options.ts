import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { parseKeyRing } from '../db/endpoints/key-ring';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../domain/retry-schedule';
import { createResolver } from '../outbound/connect';
import { createSender } from '../outbound/sender';
import { ConfigError, targetRules, type Config } from '../runtime/config/config';
import type { WorkerProcessOptions } from './start-worker';
import type { TemporalTarget } from '../runtime/temporal/temporal-target';
import { openTracing } from '../runtime/telemetry/tracing';

/** Task queue of the workflows: a name that nobody else in the namespace has. */
export const TASK_QUEUE = 'notifications';
/** Temporal worker deployment that builds of the worker belong to. */
export const WORKER_DEPLOYMENT = 'partner-finance-quote-service';
/**
 * Most sends under way in a process, 16 slots for each of 25 endpoints that do not answer. A send is mostly waiting; what it keeps in
 * memory is bounded, and with all of them waiting 64 KiB of answer each come to 25 MiB.
 */
export const MOST_SENDS = 400;
/**
 * Most workflow tasks under way in a process. Half of them may be fast first attempts: with 40, 43 % of 64 in flight took the
 * regular path, which costs Temporal twice as much. Pollers take up to ten, so that under 24 nothing would start eagerly.
 */
export const MOST_WORKFLOW_TASKS = 160;
/** How often the dispatcher looks for rows it was not notified of. A hint is rarely lost, and a second is soon enough when one is. */
const SWEEP_MS = 1_000;
/** How often rows are held against Temporal; a round asks about 50 of them. */
const RECONCILE_EVERY_MS = 10_000;
/** How long a delivery is left alone before that: longer than any activity (40 s), so that most have made a step. */
const RECONCILE_AFTER_MS = 60_000;
/** Written by `npm run build`, beside the compiled code. */
const WORKFLOW_BUNDLE = join(__dirname, '../workflow-bundle.js');

/** What tests vary; an operator has no reason to. */
export interface WorkerTuning {
  readonly taskQueue?: string;
  readonly deploymentName?: string;
  readonly workflows?: WorkerProcessOptions['workflows'];
  readonly sweepMs?: number;
  readonly testLadderMs?: readonly number[];
  readonly reconcileAfterMs?: number;
  /** 24 or more. */
  readonly mostWorkflowTasks?: number;
}

/** @throws ConfigError when the key ring is missing; KeyRingError when a setting cannot be used. */
export function workerOptions(
  config: Config,
  surroundings: { readonly databaseUrl: string; readonly temporal: TemporalTarget; readonly logger: Logger },
  tuning: WorkerTuning = {},
): WorkerProcessOptions {
  if (config.WEBHOOK_KEYS === undefined) {
    throw new ConfigError('WEBHOOK_KEYS is not set: without it no webhook can be signed.');
  }
  const sender = createSender({
    ...targetRules(config),
    resolver: createResolver(),
    ...(config.WEBHOOK_CA_FILE !== undefined && { ca: readFileSync(config.WEBHOOK_CA_FILE, 'utf8') }),
    now: Date.now,
  });
  const { DELIVERY_LADDER_SECONDS: ladderMs = DELIVERY_LADDER_MS } = config;
  const {
    testLadderMs = TEST_LADDER_MS,
    reconcileAfterMs = RECONCILE_AFTER_MS,
    deploymentName = WORKER_DEPLOYMENT,
  } = tuning;
  return {
    ...surroundings,
    databaseListenUrl: config.DATABASE_LISTEN_URL ?? surroundings.databaseUrl,
    databasePoolSize: config.DATABASE_POOL_SIZE,
    databaseTimeoutMs: config.DATABASE_TIMEOUT_MS,
    taskQueue: tuning.taskQueue ?? TASK_QUEUE,
    workflows: tuning.workflows ?? builtWorkflows(),
    keyRing: parseKeyRing(config.WEBHOOK_KEYS),
    send: (request) => sender.send(request),
    ladderFor: (eventType) => (eventType === TEST_EVENT_TYPE ? testLadderMs : ladderMs),
    sweepMs: tuning.sweepMs ?? SWEEP_MS,
    reconcile: {
      everyMs: Math.min(RECONCILE_EVERY_MS, reconcileAfterMs),
      olderThanMs: reconcileAfterMs,
    },
    mostSends: MOST_SENDS,
    mostWorkflowTasks: tuning.mostWorkflowTasks ?? MOST_WORKFLOW_TASKS,
    version:
      config.WORKER_BUILD_ID === undefined ? null : { deploymentName, buildId: config.WORKER_BUILD_ID },
    production: config.ENVIRONMENT === 'production',
    tracing: openTracing(config, 'pfqs-worker'),
    retentionAt: config.RETENTION_AT,
  };
}

/** What the build has bundled; from sources the workflow code is bundled at the start, in about two seconds. */
const builtWorkflows = (): WorkerProcessOptions['workflows'] =>
  existsSync(WORKFLOW_BUNDLE)
    ? { bundle: { codePath: WORKFLOW_BUNDLE } }
    : { folder: join(__dirname, '../workflows') };
