import { userInfo } from 'node:os';
import { connectDatabase } from '../db/postgres/connect';
import { runOps } from '../ops/program';
import { readConfig } from '../runtime/config/config';
import { opsOptions } from '../ops/options';
import { deliveryStoryUrl, TASK_QUEUE, WORKER_DEPLOYMENT } from '../workflows/names';

/** A large import takes seconds; nothing of ours takes a minute. */
const STATEMENT_TIMEOUT_MS = 60_000;

/** Name of the operating-system user; a container may run as one that has none. */
function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

// `ops … | head` closes the pipe early; what was done stays done.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

/** Once: the default of both signals comes back with the first, so that a second one ends the process. */
function interruptible(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}

async function main(): Promise<void> {
  const options = opsOptions(() => readConfig());
  const deployment = async () => {
    const { workerDeployment } = await import('../ops/temporal/worker-deployments.js');
    return workerDeployment(options.temporal(), WORKER_DEPLOYMENT);
  };
  const exitCode = await runOps(
    {
      connect: () =>
        connectDatabase({
          url: options.databaseUrl(),
          poolSize: 1,
          applicationName: 'ops',
          statementTimeoutMs: STATEMENT_TIMEOUT_MS,
        }),
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
      stdin: process.stdin,
      get actor() {
        return options.actor(currentUser());
      },
      now: () => new Date(),
      interruptible,
      retentionAt: () => options.retentionAt(),
      startRetention: async () => {
        const { startRetention } = await import('../ops/temporal/start-retention.js');
        return startRetention(options.temporal(), TASK_QUEUE);
      },
      keyRing: () => options.keyRing(),
      checkTarget: (url) => options.checkTarget(url),
      orderDelivery: async (delivery, order) => {
        // Only here: its client takes longer to load than most commands take to run.
        const { orderDelivery } = await import('../ops/temporal/order-delivery.js');
        return orderDelivery(options.temporal(), delivery, order);
      },
      storyUrl: (delivery) => {
        const page = options.temporalUi();
        return page === null ? null : deliveryStoryUrl(page, options.temporal().namespace, delivery);
      },
      deployment: {
        describe: async () => (await deployment()).describe(),
        setCurrent: async (buildId) => (await deployment()).setCurrent(buildId),
        ramp: async (buildId, percent) => (await deployment()).ramp(buildId, percent),
      },
    },
    process.argv.slice(2),
  );
  // Not process.exit(): what was printed into a pipe must get out first.
  process.exitCode = exitCode;
}

void main();
