import { removeDirectory, temporaryDirectory } from '../test/support/temporary-directory';
import { startWatchdog } from '../test/support/watchdog';

/** A folder for what a bench starts. Should the bench be killed, its processes end and the folder goes. */
export async function benchDirectory(
  purpose: string,
): Promise<{ readonly directory: string; readonly remove: () => Promise<void> }> {
  const directory = await temporaryDirectory(purpose);
  const dismissWatchdog = startWatchdog(directory);
  return {
    directory,
    async remove() {
      dismissWatchdog();
      await removeDirectory(directory);
    },
  };
}
