import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { SendWebhook } from '../activities';
import { parseKeyRing } from '../db/endpoints/key-ring';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../domain/delivery-outcome';
import { createResolver, resolveTarget } from '../outbound/names';
import { createSender } from '../outbound/sender';
import { TRY_EVERY_MS } from '../domain/our-outage';
import { createProbe } from './reach';
import { ConfigError, targetRules, type Config } from '../runtime/config/config';
import { openTracing } from '../runtime/telemetry/tracing';
import type { TemporalTarget } from '../runtime/temporal/temporal-target';
import { TASK_QUEUE, WORKER_DEPLOYMENT } from '../workflows/names';
import { builtWorkflows, type WorkflowCode } from '../runtime/temporal/workflow-code';

/**
 * Sends at once in a process: 16 for each of 25 endpoints that do not answer. Each may buffer 64 KiB of
 * an answer, 25 MiB in all.
 */
export const MOST_SENDS = 400;
/**
 * Workflow tasks at once; at least 24, as pollers take ten. Half may be fast first attempts. With 40
 * such slots and 64 deliveries in flight, 43 % found none.
 */
export const MOST_WORKFLOW_TASKS = 160;
/** How often the dispatcher looks for rows whose hint was lost, in milliseconds. */
const SWEEP_MS = 1_000;
/** How often rows are compared with Temporal; a round asks about 50 of them. */
const RECONCILE_EVERY_MS = 10_000;
/** How often one of the workers counts over all rows; less often when that takes long. */
const FIGURES_EVERY_MS = 10_000;
/** A delivery is compared after this time without a step, which is longer than any activity (40 s). */
const RECONCILE_AFTER_MS = 60_000;
/**
 * A delivery that found no free slot in so many rounds is put back into the queue. A round takes 11 events
 * of its workflow's history, of which Temporal allows 51,200.
 */
const MOST_BUSY_ROUNDS = 50;
/** Only tests vary these. */
export interface WorkerTuning {
  readonly taskQueue?: string;
  readonly workflows?: WorkflowCode;
  readonly sweepMs?: number;
  readonly testLadderMs?: readonly number[];
  readonly reconcileAfterMs?: number;
  readonly figuresEveryMs?: number;
  /** 0: every attempt finds all slots taken. */
  readonly mostSends?: number;
  readonly mostBusyRounds?: number;
  /** How often each endpoint is tried while our network reaches nobody. */
  readonly tryEveryMs?: number;
  /** 24 or more. */
  readonly mostWorkflowTasks?: number;
  /** First attempts at once within workflow tasks; 0: every attempt takes the regular path. */
  readonly fastSlots?: number;
}

/** @throws ConfigError for a file without a certificate in PEM, which Node would leave out without a word */
function readAuthority(file: string): string {
  const text = readFileSync(file, 'utf8');
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new ConfigError(`WEBHOOK_CA_FILE: ${file} has no certificate in PEM.`);
}

/** Every part of a worker takes these options, or some of them, as they are. */
export type WorkerOptions = ReturnType<typeof workerOptions>;

/**
 * @param surroundings.besideApi whether an API in this process shows the metrics of Node
 * @throws ConfigError without a key ring, or for a bad authority
 * @throws KeyRingError when the key ring cannot be parsed
 */
export function workerOptions(
  config: Config,
  surroundings: {
    readonly databaseUrl: string;
    readonly temporal: TemporalTarget;
    readonly logger: Logger;
    readonly besideApi?: boolean;
  },
  tuning: WorkerTuning = {},
) {
  if (config.WEBHOOK_KEYS === undefined)
    throw new ConfigError('WEBHOOK_KEYS is not set: without it no webhook can be signed.');
  const resolver = createResolver();
  const { send }: { send: SendWebhook } = createSender({
    ...targetRules(config),
    resolver,
    ...(config.WEBHOOK_CA_FILE !== undefined && { ca: readAuthority(config.WEBHOOK_CA_FILE) }),
    now: Date.now,
  });
  const { reconcileAfterMs = RECONCILE_AFTER_MS, mostWorkflowTasks = MOST_WORKFLOW_TASKS } = tuning;
  const deploymentName = config.TEMPORAL_DEPLOYMENT_NAME ?? WORKER_DEPLOYMENT;
  const buildId = config.WORKER_BUILD_ID;
  return {
    besideApi: false,
    ...surroundings,
    databasePoolSize: config.DATABASE_POOL_SIZE,
    databaseTimeoutMs: config.DATABASE_TIMEOUT_MS,
    taskQueue: tuning.taskQueue ?? TASK_QUEUE,
    workflows: tuning.workflows ?? builtWorkflows(join(__dirname, '..')),
    build: buildId === undefined ? null : { deploymentName, buildId },
    mostSends: tuning.mostSends ?? MOST_SENDS,
    mostBusyRounds: tuning.mostBusyRounds ?? MOST_BUSY_ROUNDS,
    mostWorkflowTasks,
    fastSlots: tuning.fastSlots ?? Math.floor(mostWorkflowTasks / 2),
    fastSlotsPerEndpoint: config.FAST_ENDPOINT_SLOTS,
    keyRing: parseKeyRing(config.WEBHOOK_KEYS),
    send,
    probe:
      config.OUTBOUND_PROBE === undefined
        ? null
        : createProbe(
            config.OUTBOUND_PROBE,
            async (host) =>
              await resolveTarget(host, { resolver, hosts: new Map(), isAllowed: () => true, dnsMs: 5_000 }),
          ),
    tryEveryMs: tuning.tryEveryMs ?? TRY_EVERY_MS,
    ladders: {
      test: tuning.testLadderMs ?? TEST_LADDER_MS,
      status: config.DELIVERY_LADDER_SECONDS ?? DELIVERY_LADDER_MS,
    },
    sweepMs: tuning.sweepMs ?? SWEEP_MS,
    reconcileEveryMs: Math.min(RECONCILE_EVERY_MS, reconcileAfterMs),
    reconcileAfterMs,
    figuresEveryMs: tuning.figuresEveryMs ?? FIGURES_EVERY_MS,
    retentionAt: config.RETENTION_AT,
    production: config.ENVIRONMENT === 'production',
    tracing: openTracing(config, 'pfqs-worker'),
  };
}
