/** The database did not answer in the time we give it. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Ends the wait for a query after `ms` milliseconds: postgres.js has no limit of its own for waiting on its pool. A
 * query that can be cancelled is: it leaves the queue, or the server is told to stop it.
 * @throws DeadlineError
 */
export async function withDeadline<T>(query: PromiseLike<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new DeadlineError(`${what}: no answer from the database within ${ms} ms`));
      // Whoever waits has been told; what becomes of the query itself interests nobody any more.
      Promise.resolve(query).catch(() => undefined);
      (query as { cancel?: () => void }).cancel?.();
    }, ms);
  });
  try {
    return await Promise.race([query, expiry]);
  } finally {
    clearTimeout(timer);
  }
}
