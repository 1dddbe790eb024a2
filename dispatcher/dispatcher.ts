import type { ClaimedNotification } from '../db/queries/dispatch';
import type { StartDelivery } from './delivery-starter';
import { createPause } from './pause';

/** A claim that was not followed by a start is due again after this: far above the deadline of a start. */
const LEASE_MS = 10_000;
/** What could not be started is tried again after this; a Temporal that is away is asked no more often. */
const PAUSE_MS = 1_000;

export interface DispatcherDeps {
  readonly claim: (options: { limit: number; leaseMs: number }) => Promise<ClaimedNotification[]>;
  readonly markStarted: (started: readonly ClaimedNotification[]) => Promise<void>;
  readonly giveBack: (claimed: readonly ClaimedNotification[], pauseMs: number) => Promise<void>;
  readonly start: StartDelivery;
  readonly onStarted: (count: number) => void;
  readonly onError: (error: unknown, what: string) => void;
  /** Longest time until what was not heard of is found, in milliseconds. */
  readonly sweepMs: number;
  /** Most notifications taken at once. */
  readonly batch: number;
}

export interface Dispatcher {
  /** There may be something to do: look at once. */
  wake(): void;
  /** Starts nothing more; resolves when what was under way has been written down. */
  stop(): Promise<void>;
}

/**
 * Turns rows into workflows: takes what is due from Postgres, starts it, and says so in Postgres. Whatever happens in
 * between, the row stays and is taken again; starting the same workflow twice is harmless.
 */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { claim, batch, onError, sweepMs } = deps;
  let stopped = false;
  let woken = false;
  const pause = createPause();

  const running = (async () => {
    while (!stopped) {
      woken = false;
      const more = await round().catch((error: unknown) => {
        onError(error, 'the dispatcher cannot reach Postgres');
        return false;
      });
      if (!more && !woken && !stopped) await pause.wait(sweepMs);
    }
  })();

  async function round(): Promise<boolean> {
    const claimed = await claim({ limit: batch, leaseMs: LEASE_MS });
    if (claimed.length === 0) return false;
    const results = await Promise.allSettled(claimed.map((one) => deps.start(one)));
    const failed = claimed.filter((_one, at) => results[at]?.status === 'rejected');
    const fault = results.find((result) => result.status === 'rejected');
    if (fault !== undefined) onError(fault.reason, `${failed.length} deliveries could not be started`);
    const started = claimed.filter((one) => !failed.includes(one));
    await deps.markStarted(started);
    if (started.length > 0) deps.onStarted(started.length);
    await deps.giveBack(failed, PAUSE_MS);
    return failed.length === 0 && claimed.length === batch;
  }

  const wake = () => {
    woken = true;
    pause.end();
  };
  return {
    wake,
    async stop() {
      stopped = true;
      wake();
      await running;
    },
  };
}
