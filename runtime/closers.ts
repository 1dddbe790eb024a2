export interface Closers {
  add(close: () => unknown): void;
  /**
   * Closes all that is open, the last opened first.
   * @throws the first failure, after all have been closed
   */
  close(): Promise<void>;
}

/**
 * Runs `open`, which adds a closer for each thing that it opens. When it fails, they are closed.
 * @throws what `open` throws
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
  const closers: Closers = { add: (close) => void stack.push(close), close: () => (closing ??= closeAll()) };
  try {
    return await open(closers);
  } catch (error) {
    // The caller gets the failure to open, not one to close.
    await closers.close().catch(() => undefined);
    throw error;
  }
}
