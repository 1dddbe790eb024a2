import type { ConnectionLike } from '@temporalio/client';

/** Temporal did not answer in the time we give it. What was asked may still happen. */
export class TemporalSilent extends Error {
  override readonly name = 'TemporalSilent';
}

/**
 * Ends the wait for Temporal after `ms` milliseconds. The client's own deadline is not enough: the native connection
 * applies it to each of its retries, and knows no abort signal.
 * @throws TemporalSilent
 */
export async function inTime<T>(
  client: Pick<ConnectionLike, 'withDeadline'>,
  ms: number,
  call: () => Promise<T>,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TemporalSilent(`no answer from Temporal within ${ms} ms`)), ms);
  });
  const answer = client.withDeadline(Date.now() + ms, call);
  // Its end may come after everybody has gone.
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, expiry]);
  } finally {
    clearTimeout(timer);
  }
}
