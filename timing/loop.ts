/**
 * Longest wait for one statement of a round, in milliseconds; far above what Postgres allows a statement (DATABASE_TIMEOUT_MS). A
 * query that never settles, because its connection was lost, then ends its round, and not the loop.
 */
export const ROUND_TIMEOUT_MS = 60_000;

/** A pause that can be ended early; one `wait` at a time. */
function createPause() {
  let end: () => void = () => undefined;
  return {
    wait: (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        end = () => (clearTimeout(timer), resolve());
      }),
    end: () => end(),
  };
}

interface LoopOptions {
  /**
   * One round, which ends early when `stopped` says so. After `again` the next follows without a pause; after `done` there is
   * none.
   * @param wake the loop's own: for what the round leaves to be done later.
   */
  readonly round: (stopped: () => boolean, wake: () => void) => Promise<'again' | 'done' | void>;
  /** Pause between rounds, in milliseconds, also after a round that failed. */
  readonly everyMs: number | (() => number);
  readonly onError: (error: unknown) => void;
  /** Milliseconds that a wake-up does not shorten, asked for after each pause. Default: none. */
  readonly restMs?: () => number;
}

export interface Loop {
  /** There may be something to do: the next round begins at once, or directly after the one under way. */
  wake(): void;
  /** Begins no further round; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/** Starts a loop with its first round. A round that fails ends nothing but itself. */
export function startLoop({ round, everyMs, onError, restMs = () => 0 }: LoopOptions): Loop {
  let stopped = false;
  let woken = false;
  const pause = createPause();
  const rest = createPause();
  const wake = () => {
    woken = true;
    pause.end();
  };

  const running = (async () => {
    while (!stopped) {
      woken = false;
      const next = await round(() => stopped, wake).catch(onError);
      if (next === 'done') return;
      if (next !== 'again' && !woken && !stopped)
        await pause.wait(typeof everyMs === 'number' ? everyMs : everyMs());
      const leftMs = restMs();
      if (leftMs >= 1 && !stopped) await rest.wait(leftMs);
    }
  })();

  return {
    wake,
    async stop() {
      stopped = true;
      pause.end();
      rest.end();
      await running;
    },
  };
}
