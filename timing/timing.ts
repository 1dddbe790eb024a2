import { setTimeout as sleep } from 'node:timers/promises';

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
   * One round, which ends early when `stopped`. `again`: the next follows at once; `done`: none follows.
   * @param wake begins another round when this one leaves work
   */
  readonly round: (stopped: () => boolean, wake: () => void) => Promise<'again' | 'done' | void>;
  readonly everyMs: number | (() => number);
  readonly onError: (error: unknown) => void;
  /** Milliseconds after each pause that a wake-up does not shorten. Default: none. */
  readonly restMs?: () => number;
}

export interface Loop {
  /** Begins the next round at once, or directly after the one under way. */
  wake(): void;
  stop(): Promise<void>;
}

/** Starts a loop with its first round. It continues after a round that fails. */
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

/** Longest wait for one statement of a round, in milliseconds, far above DATABASE_TIMEOUT_MS. */
const ROUND_TIMEOUT_MS = 60_000;

/** Waits for a query of a loop. One that never settles, as its connection was lost, ends only its round. */
export const inRound = <T>(query: PromiseLike<T>) => withTimeout(query, ROUND_TIMEOUT_MS, 'Postgres');

export async function pauseUntil(atMs: number, signal: AbortSignal): Promise<void> {
  const ms = atMs - performance.now();
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** The work took too long. It was not stopped, and may still succeed. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** A timer that is later than this tells that the process stood still. */
const STOOD_STILL_MS = 50;

/**
 * Calls `over` in `ms` milliseconds. When this process stood still, frozen or busy, it waits for as long
 * again, at most `ms`: what arrived meanwhile has not been read yet.
 * @returns ends the wait
 */
export function startDeadline(ms: number, over: () => void): () => void {
  const dueAt = performance.now() + ms;
  let timer = setTimeout(() => {
    const lateMs = performance.now() - dueAt;
    if (lateMs < STOOD_STILL_MS) over();
    else timer = setTimeout(over, Math.min(lateMs, ms));
  }, ms);
  return () => clearTimeout(timer);
}

/**
 * Waits for `work` until the deadline in `ms` milliseconds, and until `signal` aborts. The work continues,
 * and its outcome is then ignored. Only a postgres.js query that still waits for a connection is cancelled.
 * One that was sent is left to `statement_timeout`, because postgres.js 3.4.9 would take the answer to
 * a cancelled statement for that of the next one.
 * @param what names the work in the error's message, or makes the error
 * @throws TimeoutError or what `what` makes, the signal's reason, else what `work` throws
 */
export async function withTimeout<T>(
  work: PromiseLike<T>,
  ms: number,
  what: string | (() => Error),
  signal?: AbortSignal,
): Promise<T> {
  let stop: () => void = () => undefined;
  let abort: () => void = () => undefined;
  const end = new Promise<never>((_resolve, reject) => {
    stop = startDeadline(ms, () => {
      // Cancelling makes the query fail with an error of its own, so the caller gets the timeout's first.
      setImmediate(() => {
        const { state, cancel } = work as { state?: object | null; cancel?: () => void };
        if (state === null) cancel?.call(work);
      });
      reject(typeof what === 'string' ? new TimeoutError(`${what}: no answer within ${ms} ms`) : what());
    });
    abort = () => reject(signal?.reason as Error);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([end, work]);
  } finally {
    stop();
    signal?.removeEventListener('abort', abort);
  }
}
