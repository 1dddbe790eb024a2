/** Whether it does not fail. */
export const succeeds = (attempt: Promise<unknown>) =>
  attempt.then(
    () => true,
    () => false,
  );

/** After a long wait it looks more rarely: to ask a process that starts costs as much as its start. */
const MOST_MS = 200;

/** Waits until something holds. @throws with the last fault when it does not in time. */
export async function until(
  check: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 20_000,
  everyMs = 25,
): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    if (await check()) return;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    const pauseMs = Math.max(everyMs, Math.min(waitedMs / 10, MOST_MS));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
