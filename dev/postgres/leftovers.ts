import { signal, waitForEnd } from '../processes';
import { processesOn, stopLeftoversOf, type ServerKind } from '../server-kind';

/**
 * SIGINT is Postgres' fast shutdown: sessions end, a checkpoint is written. SIGQUIT skips the checkpoint, and the
 * next start recovers; after that only SIGKILL is left. (Its parts are its children: they follow.)
 */
export const POSTGRES: ServerKind = {
  name: 'Postgres',
  program: 'postgres',
  dataFlag: '-D',
  stopBy: [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ],
};

/**
 * Stops what a killed run left behind on this data directory: its server, or an initdb under way in `<dir>.new`.
 * @throws when the server cannot be stopped.
 */
export async function stopLeftovers(dataDir: string, onProgress: (message: string) => void): Promise<void> {
  for (const pid of await processesOn({ program: 'initdb', dataFlag: '-D' }, `${dataDir}.new`)) {
    signal(pid, 'SIGKILL');
    await waitForEnd(pid, 5_000);
  }
  await stopLeftoversOf(POSTGRES, dataDir, onProgress);
}
