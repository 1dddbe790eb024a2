import { userInfo } from 'node:os';
import { join } from 'node:path';
import { connectDatabase, databaseNow } from '../db/postgres/connect';
import { runOps } from '../ops/program';
import { readConfig } from '../runtime/config/config';
import { builtWorkflows } from '../runtime/temporal/workflow-code';
import { opsOptions } from '../ops/options';
import { TASK_QUEUE, WORKER_DEPLOYMENT } from '../workflows/names';

/** A large import takes seconds; nothing of ours takes a minute. */
const STATEMENT_TIMEOUT_MS = 60_000;

/** Name of the operating-system user, which a container may lack. */
function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

// `ops … | head` closes standard output early, and `ops … 2>&1 | head` both; a command that has begun is carried out.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return;
    console.error(
      `error: the answer cannot be written (${error.message}); what the command changed stays so`,
    );
    process.exit(1);
  });

/**
 * The first signal restores the default of both, so that a second one ends the process. `--watch` also ends when nobody
 * reads its output any more.
 */
function interruptible(): AbortSignal {
  const controller = new AbortController();
  process.stdout.once('error', () => controller.abort());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}

async function main(): Promise<void> {
  const options = opsOptions(() => readConfig());
  const exitCode = await runOps(
    {
      ...options,
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
      now: databaseNow,
      interruptible,
      workflows: () => builtWorkflows(join(__dirname, '..')),
      async temporal() {
        // Imported only here, because loading it takes longer than most commands.
        const { temporalOrders } = await import('../ops/temporal.js');
        return temporalOrders(options.temporal(), {
          taskQueue: TASK_QUEUE,
          deployment: options.deployment() ?? WORKER_DEPLOYMENT,
        });
      },
    },
    process.argv.slice(2),
  );
  // What was printed into a pipe must have gone. A connection to Temporal that nobody answers would keep this process for two minutes.
  for (const stream of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => (stream.writable ? stream.write('', () => resolve()) : resolve()));
  process.exit(exitCode);
}

void main();
