/** Whether it does not fail. */
export const succeeds = (attempt: Promise<unknown>) =>
  attempt.then(
    () => true,
    () => false,
  );

/** Longest pause between two looks, which grows with the wait: looking every 25 ms takes CPU from what is waited for. */
const LONGEST_PAUSE_MS = 200;

/** Waits until something holds. @throws with the last fault when it does not in time. */
export async function until(
  check: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 60_000,
  everyMs = 25,
): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    if (await check()) return;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    const pauseMs = Math.max(everyMs, Math.min(waitedMs / 10, LONGEST_PAUSE_MS));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Stops this thread, as in a process that is frozen or busy: what arrives meanwhile is read afterwards. */
export const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
