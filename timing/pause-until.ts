import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until `performance.now()` is at least `atMs`, or `signal` aborts. A moment that has passed is not waited for. */
export async function pauseUntil(atMs: number, signal: AbortSignal): Promise<void> {
  const ms = atMs - performance.now();
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined);
}
