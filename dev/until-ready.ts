import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a check passes, the signal aborts or the time is over: whatever it waits for keeps trying by itself. */
export async function untilReady(
  check: () => Promise<void>,
  options: { readonly patienceMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const deadline = Date.now() + options.patienceMs;
  while (!options.signal.aborted && Date.now() < deadline) {
    try {
      await check();
      return true;
    } catch {
      await sleep(100);
    }
  }
  return false;
}
