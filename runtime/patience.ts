import { withDeadline } from '../db/postgres/deadline';

/** Far above what a statement may take (DATABASE_TIMEOUT_MS). */
const PATIENCE_MS = 60_000;

/**
 * Waits for Postgres in a loop of the worker. One statement that never settles (a connection lost in an odd moment) would end such a
 * loop for good, and with it what it is there for: its round fails, and the next one begins.
 * @throws DeadlineError after a minute
 */
export async function inPatience<T>(query: PromiseLike<T>, what: string): Promise<T> {
  return withDeadline(query, PATIENCE_MS, what);
}
