import { type TestWorkerOptions } from './delivery';
import { until } from '../../testbed/until';
import { emittedBy } from '../../testbed/emitted';
import { freePort } from '../../dev/ports';
import { demand } from './on-demand';
import { startWithFiles } from '../../testbed/project-process';
import { serviceCommand } from './compiled';
import { asRole } from '../../testbed/roles';
import type { SharedBundle } from './temporal-run';

/** A real worker process of its own, which may be killed. */
export type WorkerProcess = Awaited<ReturnType<typeof startWorkerProcess>>;

/** Starts one. It may not be ready yet: see `ready`. */
export async function startWorkerProcess(options: TestWorkerOptions) {
  const { databaseUrl, temporal, taskQueue, receiver, keys } = options;
  const { codePath } = await demand<SharedBundle>('bundle');
  const port = await freePort();
  const worker = await startWithFiles({
    name: 'worker-process',
    // As deployed (docker-compose.yml).
    command: await serviceCommand('test/support/worker-program.ts', {
      node: ['--require', './worker/workflow-thread.cjs'],
    }),
    files: { 'ca.pem': receiver.ca },
    environment: (file) => ({
      DATABASE_URL: asRole(databaseUrl, 'worker'),
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
      TASK_QUEUE: taskQueue,
      RETENTION_AT: 'off',
      WEBHOOK_KEYS: keys,
      WEBHOOK_CA_FILE: file('ca.pem'),
      WORKFLOW_BUNDLE: codePath,
      WORKER_PORT: String(port),
      DISPATCH_SWEEP_MS: '500',
      LOG_LEVEL: 'debug',
      ...receiver.environment,
      ...options.environment,
    }),
  });

  const readiness = async () => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/ready`);
      const { reason = '' } = (await answer.json()) as { reason?: string };
      return { status: answer.status, reason };
    } catch {
      return { status: 0, reason: 'nobody listens' };
    }
  };
  return {
    ...worker,
    port,
    /** What `/ready` answers; status 0 while nobody listens. */
    readiness,
    /** Waits until `/ready` gives a reason with this in it. */
    unreadyFor: (what: string) =>
      until(async () => (await readiness()).reason.includes(what), `it names ${what}`, 60_000),
    /** Waits until it can do its work. @throws with its output when that takes too long, or it has ended. */
    async ready(timeoutMs = 60_000) {
      let last = { status: 0, reason: 'not asked' };
      const decided = async () => {
        last = await readiness();
        return last.status === 200 || !worker.running();
      };
      await until(decided, 'the worker is ready', timeoutMs, 50).catch(() => undefined);
      if (last.status !== 200)
        throw new Error(`the worker is not ready (${last.reason}):\n${worker.output()}`);
    },
    /** Its `/metrics`, as Prometheus waits for it. @throws unless it answers 200 within 10 s. */
    metrics: async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(10_000) });
      const page = await answer.text();
      if (!answer.ok) throw new Error(`/metrics answers ${answer.status}: ${page}`);
      emittedBy('worker-metrics')(page);
      return page;
    },
  };
}
