import { DeadlineError, within } from '../../timing/deadline';

/** Far above what a statement may take (DATABASE_TIMEOUT_MS). */
const LOOP_DEADLINE_MS = 60_000;

/**
 * Ends the wait for a query of a loop of the worker after a minute. One that never settles (a connection lost in an odd moment)
 * would otherwise end the loop for good: so its round fails, and the next begins.
 * @throws DeadlineError
 */
export const inRound = <T>(query: PromiseLike<T>, what: string): Promise<T> =>
  withDeadline(query, LOOP_DEADLINE_MS, what);

/**
 * Ends the wait for a query after `ms` milliseconds: postgres.js has no limit of its own for waiting on its pool. A
 * query that was not sent yet leaves the queue. One that was is left to the server's `statement_timeout`: postgres.js 3.4.9 does not
 * expect its answer once it is cancelled, and takes the answer for that of the next statement on the connection.
 * @throws DeadlineError
 */
export async function withDeadline<T>(query: PromiseLike<T>, ms: number, what: string): Promise<T> {
  return within(query, ms, () => {
    // After the caller has been told: the query's own end is not the answer. Only one that waits for a connection is cancelled.
    setImmediate(() => {
      const { state, cancel } = query as { state?: object | null; cancel?: () => void };
      if (state === null) cancel?.call(query);
    });
    return new DeadlineError(`${what}: no answer from the database within ${ms} ms`);
  });
}
