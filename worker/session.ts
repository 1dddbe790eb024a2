import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { NativeConnection, Worker, type NativeConnectionOptions } from '@temporalio/worker';
import type { createActivities } from '../activities';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { faultText } from '../runtime/temporal/connect';
import { askForHistories, lackOfSearchAttributes } from '../runtime/temporal/namespace';
import { codeOptions, workflowCode } from '../runtime/temporal/workflow-code';
import { startLoop, TimeoutError, withTimeout } from '../timing/timing';
import { sendsQueueOf } from '../workflows/names';
import type { WorkerOptions } from './options';

/** Above the activity timeout of 40 s, so that a stop finishes what is being sent. */
const SHUTDOWN_GRACE = '45 seconds';
const SHUTDOWN_FORCE = '60 seconds';
/**
 * Activity slots beyond the send slots, so that an attempt without a send slot is answered `busy` at
 * once.
 */
const SLOTS_TO_ASK = 32;
/** Temporal's client has no timeout for a server that accepts a connection and does not answer. */
const CONNECT_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 5_000;
/** How often the connection is tried, and how long it may be silent until another is tried beside it. */
const WATCH_EVERY_MS = 5_000;
const SILENT_MS = 15_000;
const RECONNECT_MS = [500, 1_000, 2_000] as const;
const LONGEST_RECONNECT_MS = 5_000;

/**
 * Opens a worker's connection.
 * @throws an Error that names address and credentials, as a server that demands a certificate gives no
 * reason
 */
export async function openNativeConnection(options: NativeConnectionOptions, timeoutMs = CONNECT_TIMEOUT_MS) {
  const connecting = NativeConnection.connect(options);
  try {
    return await withTimeout(connecting, timeoutMs, 'Temporal');
  } catch (error) {
    // A connection that opens after the timeout is closed.
    connecting.then((late) => late.close()).catch(() => undefined);
    const { message } = error as Error;
    throw new Error(`no connection to Temporal at ${options.address} ${protection(options)}: ${message}`, {
      cause: error,
    });
  }
}

function protection({ tls, apiKey }: NativeConnectionOptions): string {
  if (apiKey !== undefined) return 'with an API key';
  if (tls === undefined || tls === null || tls === false) return 'without TLS';
  const certificate = tls !== true && tls.clientCertPair !== undefined;
  return `with TLS and ${certificate ? 'a' : 'no'} client certificate`;
}

type SessionOptions = Pick<
  WorkerOptions,
  'temporal' | 'taskQueue' | 'workflows' | 'mostSends' | 'mostWorkflowTasks' | 'build'
>;
type Activities = ReturnType<typeof createActivities>;

export type WorkerSession = Awaited<ReturnType<typeof openWorkerSession>>;

/** Opens a connected pair of Temporal workers: workflows and records, and the sends. */
export async function openWorkerSession(options: SessionOptions, activities: Activities) {
  const { taskQueue, workflows, mostSends, mostWorkflowTasks, build } = options;
  const { namespace } = options.temporal;
  const connection = await openNativeConnection(options.temporal.connection);
  const shared = {
    connection,
    namespace,
    shutdownGraceTime: SHUTDOWN_GRACE,
    shutdownForceTime: SHUTDOWN_FORCE,
    dataConverter: {
      failureConverterPath: workflowCode(join(__dirname, '../workflows')).failureConverterPath,
    },
    ...(build !== null && {
      workerDeploymentOptions: {
        version: build,
        useWorkerVersioning: true as const,
        // A delivery lasts up to three days, and the build that began it may be gone by then. It moves
        // to the build that becomes current.
        defaultVersioningBehavior: 'AUTO_UPGRADE' as const,
      },
    }),
  } as const;
  const workers: Worker[] = [];
  try {
    workers.push(
      await Worker.create({
        ...shared,
        taskQueue,
        activities: { ...activities.records, ...activities.local },
        maxConcurrentWorkflowTaskExecutions: mostWorkflowTasks,
        maxConcurrentLocalActivityExecutions: mostWorkflowTasks,
        // A history that this code cannot continue, as another build wrote it, ends its workflow. The row
        // has everything, so the reconciler starts the next generation at the same step.
        workflowFailureErrorTypes: { '*': [], deliverNotification: ['NondeterminismError'] },
        ...codeOptions(workflows),
      }),
      await Worker.create({
        ...shared,
        taskQueue: sendsQueueOf(taskQueue),
        activities: activities.sends,
        maxConcurrentActivityTaskExecutions: mostSends + SLOTS_TO_ASK,
      }),
    );
  } catch (error) {
    await connection.close().catch(() => undefined);
    throw error;
  }
  const runs = workers.map((worker) => worker.run());
  const shutdown = () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const running = (async () => {
    try {
      await Promise.all(runs);
    } finally {
      shutdown();
      await Promise.allSettled(runs);
      await connection.close().catch(() => undefined);
    }
  })();
  // Without a handler, a failure before the first await would end the process.
  running.catch(() => undefined);
  return {
    /** Uses the connection of the worker, so that starts can be eager. */
    client: new Client({ connection, namespace }),
    /** Resolves after `stop`; rejects when a worker fails, for example because its namespace is gone. */
    running,
    async stop(): Promise<void> {
      shutdown();
      await running.catch(() => undefined);
    },
  };
}

/**
 * Opens a worker's session, and reopens it after each loss.
 * @param startDispatch starts the loops that need Temporal, once for each session
 */
export function keepSession<Dispatch extends { stop(): Promise<void> }>(
  options: SessionOptions & Pick<WorkerOptions, 'logger'>,
  activities: Activities,
  startDispatch: (client: Client) => Dispatch,
) {
  const { taskQueue, logger } = options;
  const repeats = repeatedWarnings(logger);
  const { namespace } = options.temporal;
  const now = {
    session: null as WorkerSession | null,
    dispatch: null as Dispatch | null,
    fault: 'not connected yet',
    tries: 0,
  };

  async function serve(session: WorkerSession): Promise<void> {
    const dispatch = startDispatch(session.client);
    let giveUp: () => void = () => undefined;
    const lost = new Promise<void>((resolve) => (giveUp = resolve));
    const watch = watchConnection(session, giveUp);
    now.session = session;
    now.dispatch = dispatch;
    try {
      await Promise.race([session.running, lost]);
    } finally {
      now.dispatch = null;
      await Promise.all([watch.stop(), dispatch.stop()]);
      now.session = null;
    }
  }

  // The SDK's native part has no timeout for the TLS handshake when it connects again. A host or a proxy
  // that accepts the connection and then disappears would hold up every call of this worker for good, those
  // that end the session too: another is opened without waiting for its end.
  function watchConnection(session: WorkerSession, giveUp: () => void) {
    let answeredMs = performance.now();
    return startLoop({
      async round() {
        const { workflowService } = session.client;
        const asked = withTimeout(workflowService.getSystemInfo({}), READY_TIMEOUT_MS, 'Temporal');
        const answer: unknown = await asked.catch((error: unknown) => error);
        if (!(answer instanceof TimeoutError)) answeredMs = performance.now();
        if (performance.now() - answeredMs < SILENT_MS) return;
        const another = await openNativeConnection(options.temporal.connection).catch(() => null);
        if (another === null) return;
        await another.close();
        logger.error('worker: its connection to Temporal answers nothing, although Temporal does');
        void session.stop();
        giveUp();
        return 'done';
      },
      everyMs: WATCH_EVERY_MS,
      onError: (error) => logger.error({ err: error }, 'worker: its connection could not be tried'),
    });
  }

  const loop = startLoop({
    async round(stopped) {
      const session = await openWorkerSession(options, activities);
      now.tries = 0;
      logger.info({ taskQueue }, 'worker: connected to Temporal');
      if (stopped()) await session.stop();
      else await serve(session);
    },
    everyMs: () => RECONNECT_MS[now.tries++] ?? LONGEST_RECONNECT_MS,
    onError(error) {
      now.fault = faultText(error);
      repeats.error({ err: error }, 'worker: no Temporal; notifications wait in Postgres');
    },
  });
  let stopped: Promise<void> | undefined;
  const stopOpening = () => (stopped ??= loop.stop());

  return {
    dispatch: (): Dispatch | null => now.dispatch,
    /** @throws naming what is missing: Temporal, its namespace or a search attribute. */
    async checkReady(): Promise<void> {
      if (now.session === null) throw new Error(`Temporal (namespace ${namespace}): ${now.fault}`);
      const { connection } = now.session.client;
      const asked = Promise.all([
        lackOfSearchAttributes(connection, namespace),
        askForHistories(connection, namespace),
      ]);
      const [lack] = await withTimeout(asked, READY_TIMEOUT_MS, 'Temporal');
      if (lack !== null) throw new Error(lack);
    },
    stopOpening: (): void => void stopOpening(),
    async close(): Promise<void> {
      const stopping = stopOpening();
      await now.session?.stop();
      await stopping;
    },
  };
}
