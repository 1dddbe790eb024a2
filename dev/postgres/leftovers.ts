import { basename } from 'node:path';
import { allProcesses, argumentsOf, signal, waitForEnd } from '../processes';
import { stopBy } from '../server-process';

/**
 * Stops what a killed run left behind on this data directory: its server, or an initdb under way in `<dir>.new`.
 * Found by command line, which is proof that it is ours; a pid file alone may name a stranger.
 * @throws when the server cannot be stopped.
 */
export async function stopLeftovers(dataDir: string, onProgress: (message: string) => void): Promise<void> {
  for (const pid of await allProcesses()) {
    const args = await argumentsOf(pid);
    if (runs(args, 'initdb', `${dataDir}.new`)) {
      signal(pid, 'SIGKILL');
      await waitForEnd(pid, 5_000);
    }
    if (runs(args, 'postgres', dataDir)) {
      onProgress(`stopping the Postgres that an earlier run left behind (pid ${pid})`);
      await stopServer(pid);
    }
  }
}

/**
 * SIGINT is Postgres' fast shutdown: sessions end, a checkpoint is written. SIGQUIT skips the checkpoint, and the
 * next start recovers; after that only SIGKILL is left. (Its parts are its children: they follow.)
 */
export async function stopServer(pid: number): Promise<void> {
  await stopBy('Postgres', pid, [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ]);
}

function runs(args: readonly string[], program: string, dataDir: string): boolean {
  const [command = '', ...rest] = args;
  // Where there is no /proc the arguments are one string.
  if (rest.length === 0)
    return command.includes(`/${program} -D ${dataDir} `) || command.endsWith(` -D ${dataDir}`);
  const flag = rest.indexOf('-D');
  return basename(command) === program && flag >= 0 && rest[flag + 1] === dataDir;
}
