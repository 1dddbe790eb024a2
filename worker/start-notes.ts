import type { ClaimedNotification } from '../db/notifications/claim';

/** Far below the lease: until it is noted, what was started would be due again when that ends. */
const GATHER_MS = 1_000;

/**
 * Notes in Postgres which workflows exist, a second's worth at a time. There is no hurry: a first attempt notes it too, so
 * that one which has ended here by then is left out, and nearly always nothing is left to write; and what is not noted is
 * started again after its lease, which is harmless.
 */
export function createStartNotes(
  markStarted: (started: readonly ClaimedNotification[]) => Promise<void>,
  onError: (error: unknown) => void,
) {
  /** Being started: an eager start may be answered later than its attempt ends. */
  const expected = new Set<string>();
  const gathered = new Map<string, ClaimedNotification>();
  let timer: NodeJS.Timeout | undefined;

  async function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const left = [...gathered.values()];
    gathered.clear();
    if (left.length > 0) await markStarted(left).catch(onError);
  }
  return {
    /** These are being started. */
    expect(claimed: readonly ClaimedNotification[]): void {
      for (const { notificationId } of claimed) expected.add(notificationId);
    },
    /** Of those expected, these could not be started. */
    forget(failed: readonly ClaimedNotification[]): void {
      for (const { notificationId } of failed) expected.delete(notificationId);
    },
    /** Of those expected, these have their workflow. */
    add(started: readonly ClaimedNotification[]): void {
      for (const one of started)
        if (expected.delete(one.notificationId)) gathered.set(one.notificationId, one);
      if (gathered.size > 0) timer ??= setTimeout(() => void flush(), GATHER_MS);
    },
    /** An attempt has written it down. */
    leaveOut(notificationId: string): void {
      expected.delete(notificationId);
      gathered.delete(notificationId);
    },
    flush,
  };
}
