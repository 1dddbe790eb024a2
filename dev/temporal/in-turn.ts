import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimFile } from '../claim-file';
import { StackFailure } from '../failure';

/**
 * Runs a task while this process holds a lock file; others wait for it, and are told so once. What a killed process
 * left is taken over.
 */
export async function inTurn<T>(
  file: string,
  options: {
    /** What the holder is busy with: "which gets …". */
    readonly what: string;
    readonly onProgress?: ((message: string) => void) | undefined;
    readonly signal?: AbortSignal | undefined;
  },
  task: () => Promise<T>,
): Promise<T> {
  let told = false;
  for (;;) {
    const holder = await claimFile(file, {});
    if (holder === undefined) break;
    if (!told) options.onProgress?.(`waiting for process ${holder.pid}, ${options.what}`);
    told = true;
    await sleep(200);
    if (options.signal?.aborted) throw new StackFailure('Stopped while starting.');
  }
  try {
    return await task();
  } finally {
    await rm(file, { force: true });
  }
}
