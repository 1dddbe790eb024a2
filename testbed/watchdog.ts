import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { removeDirectory, temporaryDirectory } from './temporary-directory';

/**
 * Should this process be killed: ends every process that has `directory` on its command line or works in it, and
 * deletes it. (Needs /proc; elsewhere a killed run leaves its Postgres behind.)
 * @returns call it after an orderly end.
 */
export function startWatchdog(directory: string): () => void {
  const child = spawn(process.execPath, [join(__dirname, 'watchdog-process.cjs'), directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  // It must not keep this process alive.
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  return () => child.stdin.end('done');
}

/** A new directory with such a watchdog. @param parent default: that of temporary files */
export async function watchedDirectory(purpose: string, parent?: string) {
  const directory = await temporaryDirectory(purpose, parent);
  const dismiss = startWatchdog(directory);
  return {
    directory,
    /** Removes both. */
    remove: async (): Promise<void> => {
      await removeDirectory(directory);
      dismiss();
    },
  };
}
