export interface Closers {
  /** @param close is called once, after everything that was opened later has been closed. */
  add(close: () => unknown): void;
  /**
   * Closes what is open, the last opened first. One that fails keeps no other open.
   * @throws the first failure, after all have been closed.
   */
  close(): Promise<void>;
}

/**
 * Opens what belongs together: `open` adds a closer for each thing that it has opened. When it fails, what is open by then is
 * closed.
 * @throws what `open` throws.
 */
export async function openTogether<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const stack: (() => unknown)[] = [];
  let closing: Promise<void> | undefined;
  async function closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of stack.toReversed()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
  const closers: Closers = {
    add: (close) => void stack.push(close),
    close: () => (closing ??= closeAll()),
  };
  try {
    return await open(closers);
  } catch (error) {
    // The failure to open is what the caller has to know.
    await closers.close().catch(() => undefined);
    throw error;
  }
}
