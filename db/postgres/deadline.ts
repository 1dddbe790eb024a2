/** The database did not answer in the time we give it. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Ends the wait for a query after `ms` milliseconds: postgres.js has no limit of its own for waiting on its pool. A
 * query that was not sent yet leaves the queue. One that was is left to the server's `statement_timeout`: postgres.js 3.4.9 does not
 * expect its answer once it is cancelled, and takes the answer for that of the next statement on the connection.
 * @throws DeadlineError
 */
export async function withDeadline<T>(query: PromiseLike<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new DeadlineError(`${what}: no answer from the database within ${ms} ms`));
      // Whoever waits has been told; what becomes of the query itself interests nobody any more.
      Promise.resolve(query).catch(() => undefined);
      const { state, cancel } = query as { state?: object | null; cancel?: () => void };
      if (state === null) cancel?.call(query);
    }, ms);
  });
  try {
    return await Promise.race([query, expiry]);
  } finally {
    clearTimeout(timer);
  }
}
