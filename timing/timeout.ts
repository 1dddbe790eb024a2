/** The timeout is over. The work was not stopped, and may still succeed. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Waits for `work` for at most `ms` milliseconds, and no longer than until `signal` aborts. The work itself continues, and its
 * outcome is then ignored. Only a postgres.js query that still waits for a connection is cancelled. One that was sent is left to
 * the server's `statement_timeout`: postgres.js 3.4.9 would take the answer to a cancelled statement for that of the next one.
 * @param what names the work in the error's message, or makes the error.
 * @throws TimeoutError or what `what` makes, the signal's reason when it aborts, else what `work` throws.
 */
export async function withTimeout<T>(
  work: PromiseLike<T>,
  ms: number,
  what: string | (() => Error),
  signal?: AbortSignal,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let abort: () => void = () => undefined;
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      // First the caller gets the error of the timeout: cancelling makes the query fail with another one.
      setImmediate(() => {
        const { state, cancel } = work as { state?: object | null; cancel?: () => void };
        if (state === null) cancel?.call(work);
      });
      reject(typeof what === 'string' ? new TimeoutError(`${what}: no answer within ${ms} ms`) : what());
    }, ms);
    abort = () => reject(signal?.reason as Error);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([end, work]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
