/** No answer came in the time that we give it. What was asked may still happen. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Waits for `work` for at most `ms` milliseconds, and no longer than until `signal` aborts. The work itself goes on; how it
 * ends after that is ignored.
 * @throws what `late` makes when time is up, the signal's reason when it aborts, else what `work` throws.
 */
export async function within<T>(
  work: PromiseLike<T>,
  ms: number,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let abort: () => void = () => undefined;
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), ms);
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
