import type { ConnectionLike } from '@temporalio/client';
import { DeadlineError, within } from '../../timing/deadline';

/**
 * Ends the wait for Temporal after `ms` milliseconds. The client's own deadline is not enough: the native connection
 * applies it to each of its retries, and knows no abort signal.
 * @throws DeadlineError; what was asked may still happen.
 */
export async function inTime<T>(
  client: Pick<ConnectionLike, 'withDeadline'>,
  ms: number,
  call: () => Promise<T>,
): Promise<T> {
  const answer = client.withDeadline(Date.now() + ms, call);
  return within(answer, ms, () => new DeadlineError(`no answer from Temporal within ${ms} ms`));
}
