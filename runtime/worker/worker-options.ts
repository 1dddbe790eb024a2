import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { TEST_EVENT_TYPE } from '../../contracts/webhook-event';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { DELIVERY_LADDER_MS, TEST_LADDER_MS } from '../../domain/retry-schedule';
import { parseAllowedCidrs, parseAllowedPorts } from '../../outbound/addresses';
import { createResolver } from '../../outbound/resolve';
import { createSender, type SenderOptions } from '../../outbound/sender';
import { ConfigError, type Config } from '../config/config';
import { retentionDays } from '../config/retention-settings';
import type { WorkerProcessOptions } from './start-worker';
import type { TemporalTarget } from '../temporal/temporal-target';
import { openTracing } from '../telemetry/tracing';

/** How often rows are held against Temporal; a round asks about 50 of them. */
const RECONCILE_EVERY_MS = 10_000;

/**
 * What a worker process needs, from its settings.
 * @throws ConfigError when the key ring is missing; KeyRingError and OutboundConfigError when a setting cannot be used.
 */
export function workerOptions(
  config: Config,
  surroundings: { readonly databaseUrl: string; readonly temporal: TemporalTarget; readonly logger: Logger },
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
  const ladders = {
    test: config.TEST_LADDER_SECONDS ?? TEST_LADDER_MS,
    other: config.DELIVERY_LADDER_SECONDS ?? DELIVERY_LADDER_MS,
  };
  return {
    ...surroundings,
    databaseListenUrl: config.DATABASE_LISTEN_URL ?? surroundings.databaseUrl,
    databasePoolSize: config.DATABASE_POOL_SIZE,
    databaseTimeoutMs: config.DATABASE_TIMEOUT_MS,
    taskQueue: config.TASK_QUEUE,
    workflows:
      config.WORKFLOW_BUNDLE === undefined
        ? { folder: join(__dirname, '../../workflows') }
        : { bundle: { codePath: config.WORKFLOW_BUNDLE } },
    keyRing: parseKeyRing(config.WEBHOOK_KEYS),
    send: (request) => sender.send(request),
    ladderFor: (eventType) => (eventType === TEST_EVENT_TYPE ? ladders.test : ladders.other),
    sweepMs: config.DISPATCH_SWEEP_MS,
    reconcile: {
      everyMs: Math.min(RECONCILE_EVERY_MS, config.RECONCILE_AFTER_MS),
      olderThanMs: config.RECONCILE_AFTER_MS,
    },
    mostSends: config.DELIVERIES_AT_ONCE,
    mostWorkflowTasks: config.WORKFLOW_TASKS_AT_ONCE,
    version:
      config.WORKER_BUILD_ID === undefined
        ? null
        : {
            deploymentName: config.WORKER_DEPLOYMENT,
            buildId: config.WORKER_BUILD_ID,
            behavior: config.WORKER_VERSIONING === 'pinned' ? 'PINNED' : 'AUTO_UPGRADE',
          },
    production: config.ENVIRONMENT === 'production',
    tracing: openTracing(config, 'pfqs-worker'),
    retention: { at: config.RETENTION_AT, days: retentionDays(config) },
  };
}

/**
 * Where webhooks may go. Everything but public addresses and port 443 has to be allowed by name, and never is in
 * production.
 * @throws ConfigError, OutboundConfigError
 */
export function targetRules(
  config: Pick<Config, 'ENVIRONMENT' | 'WEBHOOK_ALLOWED_CIDRS' | 'WEBHOOK_ALLOWED_PORTS' | 'WEBHOOK_HOSTS'>,
): Pick<SenderOptions, 'allowedCidrs' | 'allowedPorts'> & { hosts: ReadonlyMap<string, readonly string[]> } {
  const production = config.ENVIRONMENT === 'production';
  if (production && config.WEBHOOK_HOSTS !== '') {
    throw new ConfigError('WEBHOOK_HOSTS cannot be used in production.');
  }
  return {
    allowedCidrs: parseAllowedCidrs(config.WEBHOOK_ALLOWED_CIDRS, { production }),
    allowedPorts: parseAllowedPorts(config.WEBHOOK_ALLOWED_PORTS, { production }),
    hosts: parseHosts(config.WEBHOOK_HOSTS),
  };
}

function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return new Map(
    pairs.map((pair) => {
      const [name, address, ...more] = pair.trim().split('=');
      if (!name || !address || more.length > 0) throw new ConfigError('WEBHOOK_HOSTS must be name=address,…');
      return [name.toLowerCase(), [address]] as const;
    }),
  );
}
