import { basename } from 'node:path';
import { allProcesses, argumentsOf } from '../processes';
import { stopBy } from '../server-process';

/**
 * Stops the server that a killed run left behind on this data file. Found by command line, which is proof that it is ours.
 * @throws when it cannot be stopped.
 */
export async function stopTemporalLeftovers(
  dataFile: string,
  onProgress: (message: string) => void,
): Promise<void> {
  for (const pid of await allProcesses()) {
    if (!serves(await argumentsOf(pid), dataFile)) continue;
    onProgress(`stopping the Temporal that an earlier run left behind (pid ${pid})`);
    await stopTemporalServer(pid);
  }
}

/** It stops within 2 s, when it is well. Its file is in order even after SIGKILL. */
export async function stopTemporalServer(pid: number): Promise<void> {
  await stopBy('Temporal', pid, [
    ['SIGTERM', 10_000],
    ['SIGKILL', 5_000],
  ]);
}

function serves(args: readonly string[], dataFile: string): boolean {
  const [command = '', ...rest] = args;
  // Where there is no /proc the arguments are one string.
  if (rest.length === 0) return command.includes(`/temporal server start-dev --db-filename ${dataFile} `);
  const flag = rest.indexOf('--db-filename');
  return basename(command) === 'temporal' && flag >= 0 && rest[flag + 1] === dataFile;
}
