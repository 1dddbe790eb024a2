/** How often it is measured how late this process is, in milliseconds. */
const EVERY_MS = 50;
/** The last seconds decide. */
const WINDOW_MS = 2_000;
/** An attempt on a new connection waits for about so many turns of the event loop: name, connection, handshake, request, answer. */
const TURNS_OF_AN_ATTEMPT = 10;
/** No more than this is put down to the process, so that endpoints that hang leave the slots of a busy one. */
const MOST_MS = 4_000;

/**
 * Measures what an attempt takes longer because this process gets too little of the CPU. On an overloaded machine every
 * endpoint seems slow; the regular path, which costs two or three times as much, would then overload it for good.
 */
export function watchOwnDelay(monotonicMs: () => number) {
  let lateMs = 0;
  let lastMs = monotonicMs();
  const lateAfter = (tookMs: number) =>
    lateMs + Math.min(1, tookMs / WINDOW_MS) * (Math.max(0, tookMs - EVERY_MS) - lateMs);
  const timer = setInterval(() => {
    const tookMs = monotonicMs() - lastMs;
    lastMs += tookMs;
    lateMs = lateAfter(tookMs);
  }, EVERY_MS);
  timer.unref();
  return {
    /** Milliseconds. The delay under way counts, too: an answer may be read before the late timer runs. */
    ofAttempt: (): number => Math.min(lateAfter(monotonicMs() - lastMs) * TURNS_OF_AN_ATTEMPT, MOST_MS),
    stop: (): void => clearInterval(timer),
  };
}
