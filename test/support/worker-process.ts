import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestWorkerOptions } from './delivery';
import { emittedBy } from './emitted';
import { freePort } from './free-port';
import { asRole } from './roles';
import { prebuiltBundle } from './temporal';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

/** A real worker process of its own, which may be killed. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  /** What `/ready` answers; status 0 while nobody listens. */
  readiness(): Promise<{ readonly status: number; readonly reason: string }>;
  /** Waits until it can do its work. @throws with its output when that takes too long, or it has ended. */
  ready(timeoutMs?: number): Promise<void>;
  /** Its `/metrics`, as Prometheus waits for it. @throws unless it answers 200 within 10 s. */
  metrics(): Promise<string>;
  /** What it has written to standard output and standard error. */
  output(): string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): WorkerProcess['ended'];
  /** Kills it if it still runs, and removes its files. */
  close(): Promise<void>;
}

/** Starts one. It may not be ready yet: see `ready`. */
export async function startWorkerProcess(options: TestWorkerOptions): Promise<WorkerProcess> {
  const { databaseUrl, temporal, taskQueue, receiver, keys } = options;
  const directory = await temporaryDirectory('worker-process');
  const dismissWatchdog = startWatchdog(directory);
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, receiver.ca);
  const { codePath } = await prebuiltBundle();
  const port = await freePort();
  // The directory on the command line is how the watchdog finds it.
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', 'test/support/worker-program.ts', `--files=${directory}`],
    {
      cwd: join(__dirname, '../..'),
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: asRole(databaseUrl, 'worker'),
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: temporal.namespace,
        TASK_QUEUE: taskQueue,
        RETENTION_AT: 'off',
        WEBHOOK_KEYS: keys,
        WEBHOOK_CA_FILE: caFile,
        WORKFLOW_BUNDLE: codePath,
        WORKER_PORT: String(port),
        DISPATCH_SWEEP_MS: '500',
        LOG_LEVEL: 'debug',
        ...receiver.environment,
        ...options.environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const written: string[] = [];
  const emit = emittedBy('worker-process');
  const hear = (chunk: Buffer) => {
    written.push(chunk.toString());
    emit(chunk.toString());
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const ended = (once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>).then(
    ([code, by]) => code ?? by,
  );
  const running = () => child.exitCode === null && child.signalCode === null;

  const readiness = async () => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/ready`);
      const { reason = '' } = (await answer.json()) as { reason?: string };
      return { status: answer.status, reason };
    } catch {
      return { status: 0, reason: 'nobody listens' };
    }
  };
  const end = async (signal: NodeJS.Signals) => {
    if (running()) child.kill(signal);
    return ended;
  };
  return {
    child,
    readiness,
    async ready(timeoutMs = 60_000) {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const { status, reason } = await readiness();
        if (status === 200) return;
        if (performance.now() > deadline || !running())
          throw new Error(`the worker is not ready (${reason}):\n${written.join('')}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    metrics: async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(10_000) });
      const page = await answer.text();
      if (!answer.ok) throw new Error(`/metrics answers ${answer.status}: ${page}`);
      emittedBy('worker-metrics')(page);
      return page;
    },
    output: () => written.join(''),
    ended,
    end,
    async close() {
      await end('SIGKILL');
      dismissWatchdog();
      await removeDirectory(directory);
    },
  };
}
