import type { Logger } from 'pino';
import { startLoop } from '../timing/loop';
import { withTimeout } from '../timing/timeout';
import { missingSearchAttributes } from '../runtime/temporal/namespace';
import type { WorkerDispatch } from './dispatch';
import { openWorkerSession, type WorkerSession, type WorkerSessionOptions } from './session';

/** Pauses between attempts to reach Temporal, in milliseconds. */
const RECONNECT_MS = [500, 1_000, 2_000] as const;
const LONGEST_RECONNECT_MS = 5_000;
const READY_MS = 5_000;

interface WorkerConnectionDeps {
  readonly session: WorkerSessionOptions;
  /** Starts what needs Temporal, for as long as the session lasts. */
  readonly startDispatch: (session: WorkerSession) => WorkerDispatch;
  readonly logger: Logger;
}

/** A worker's connection to Temporal, made anew after each loss. */
interface WorkerConnection {
  /** Null while there is no session. */
  dispatch(): WorkerDispatch | null;
  /** @throws saying what is missing: Temporal, its namespace or a search attribute. */
  checkReady(): Promise<void>;
  /** Starts no delivery and no session any more; what is under way goes on. */
  stopStarting(): Promise<void>;
  /** After that: finishes what is under way. */
  close(): Promise<void>;
}

export function keepConnected(deps: WorkerConnectionDeps): WorkerConnection {
  const { session: options, startDispatch, logger } = deps;
  const { namespace, taskQueue } = options;
  let session: WorkerSession | null = null;
  let dispatch: WorkerDispatch | null = null;
  let fault = 'not connected yet';
  let tries = 0;

  const loop = startLoop({
    async round(stopped) {
      session = await openWorkerSession(options);
      tries = 0;
      logger.info({ taskQueue }, 'worker: connected to Temporal');
      try {
        // Told to stop while it was connecting: nobody else would end it.
        if (stopped()) await session.stop();
        else await serve(session);
      } finally {
        session = null;
      }
    },
    everyMs: () => RECONNECT_MS[tries++] ?? LONGEST_RECONNECT_MS,
    onError(error) {
      fault = error instanceof Error ? error.message : String(error);
      logger.error({ err: error }, 'worker: no Temporal; notifications wait in Postgres');
    },
  });

  async function serve(current: WorkerSession): Promise<void> {
    const own = startDispatch(current);
    dispatch = own;
    try {
      await current.running;
    } finally {
      dispatch = null;
      await own.stop();
    }
  }

  let ended: Promise<void> | undefined;
  return {
    dispatch: () => dispatch,
    async checkReady() {
      if (session === null) throw new Error(`Temporal (namespace ${namespace}): ${fault}`);
      const asked = missingSearchAttributes(session.connection, namespace);
      const missing = await withTimeout(asked, READY_MS, 'Temporal');
      if (missing.length > 0) throw new Error(`Temporal lacks the search attributes ${missing.join(', ')}`);
    },
    async stopStarting() {
      ended = loop.stop();
      await dispatch?.dispatcher.stop();
    },
    async close() {
      await session?.stop();
      await (ended ?? loop.stop());
    },
  };
}
