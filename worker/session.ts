import { join } from 'node:path';
import { Client } from '@temporalio/client';
import {
  NativeConnection,
  Worker,
  type NativeConnectionOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { createActivities } from '../activities';
import type { Build } from './build-watch';
import { sendsQueueOf } from '../workflows/names';
import { workflowCode } from '../runtime/temporal/workflow-code';
import { withTimeout } from '../timing/timeout';

/** Above the activity timeout of 40 s: a stop finishes what is being sent. */
const SHUTDOWN_GRACE = '45 seconds';
const SHUTDOWN_FORCE = '60 seconds';

export interface WorkerSessionOptions {
  readonly connection: NativeConnectionOptions;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Prebuilt workflow code, or the folder to build it from. */
  readonly workflows: { readonly bundle: WorkflowBundleOption } | { readonly folder: string };
  readonly activities: ReturnType<typeof createActivities>;
  /** Most deliveries under way in this process. */
  readonly mostSends: number;
  /** Most workflow tasks under way in this process, 24 or more; first attempts within them are at most half. */
  readonly mostWorkflowTasks: number;
  /** The build that these workers are; null: workers without versions. */
  readonly version?: Build | null;
}

/** Slots beyond the places: who finds no place is told so at once, and does not wait for one. */
const SLOTS_TO_ASK = 32;

/** A connected pair of workers: workflows and records, and the sends. */
export interface WorkerSession {
  /** On the same connection, so that starts can be eager. */
  readonly client: Client;
  readonly connection: NativeConnection;
  /** Resolves after `stop`; rejects when a worker fails, for example because its namespace is gone. */
  readonly running: Promise<void>;
  /** Takes no more tasks, finishes those under way within the grace. */
  stop(): Promise<void>;
}

function codeOf(workflows: WorkerSessionOptions['workflows']) {
  if ('bundle' in workflows) return { workflowBundle: workflows.bundle };
  const { workflowsPath, preloadModules } = workflowCode(workflows.folder);
  return { workflowsPath, bundlerOptions: { preloadModules } };
}

/** Temporal's own client would wait for a server that accepts a connection and says nothing. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Opens a worker's connection.
 * @throws with the address and the kind of our credentials: a server that demands a certificate closes the connection without a reason.
 */
export async function openNativeConnection(
  options: NativeConnectionOptions,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<NativeConnection> {
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

export async function openWorkerSession(options: WorkerSessionOptions): Promise<WorkerSession> {
  const { namespace, taskQueue, workflows, activities } = options;
  const { mostSends, mostWorkflowTasks, version = null } = options;
  const connection = await openNativeConnection(options.connection);
  const shared = {
    connection,
    namespace,
    shutdownGraceTime: SHUTDOWN_GRACE,
    shutdownForceTime: SHUTDOWN_FORCE,
    dataConverter: {
      failureConverterPath: workflowCode(join(__dirname, '../workflows')).failureConverterPath,
    },
    ...(version !== null && {
      workerDeploymentOptions: {
        version,
        useWorkerVersioning: true as const,
        // A delivery under way goes over to the build that becomes current: it lasts three days, its first build need not.
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
        ...codeOf(workflows),
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
  // Without a handler a failure that nobody waits for would end the process.
  running.catch(() => undefined);
  return {
    client: new Client({ connection, namespace }),
    connection,
    running,
    async stop() {
      shutdown();
      await running.catch(() => undefined);
    },
  };
}
