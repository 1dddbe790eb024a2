/**
 * Waits for `work` for at most `ms`, and no longer than until `signal` aborts.
 * @throws what `late` makes when time is up, the signal's reason when it aborts, else what `work` throws.
 */
export function within<T>(work: Promise<T>, ms: number, late: () => Error, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), ms);
    const aborted = () => reject(signal.reason as Error);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
    });
  });
}
