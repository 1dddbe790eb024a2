import { startLoop, type Loop } from '../timing/loop';

/** Of one worker at a time; each sends ten notifications a second at most, and they leave after everything that is live. */
const MOST_AT_A_TIME = 8;

interface RecovererDeps<Recovery> {
  /** Takes up a recovery that nobody carries out; null when there is none. */
  readonly claim: () => Promise<Recovery | null>;
  /** Carries it out, and writes down how it ended, or gives it back when the signal is aborted. */
  readonly run: (recovery: Recovery, stopped: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown, what: string) => void;
  readonly everyMs: number;
}

/**
 * Carries out the recoveries that partners have asked for. Every worker runs one; a lease in the recovery's row keeps them out of
 * each other's way, and one that a dead worker leaves is taken up by another. It needs no Temporal.
 */
export function startRecoverer<Recovery>(deps: RecovererDeps<Recovery>): Loop {
  const { claim, run, onError, everyMs } = deps;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function round(stopped: () => boolean): Promise<void> {
    while (!stopped() && running.size < MOST_AT_A_TIME) {
      const recovery = await claim();
      if (recovery === null) return;
      const task = run(recovery, stopping.signal)
        .catch((error: unknown) => onError(error, 'a recovery was interrupted; it is taken up again'))
        .finally(() => {
          running.delete(task);
          loop.wake();
        });
      running.add(task);
    }
  }

  const loop = startLoop({
    round,
    everyMs,
    onError: (error) => onError(error, 'recoveries cannot be looked for now'),
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      stopping.abort();
      await loop.stop();
      await Promise.all(running);
    },
  };
}
