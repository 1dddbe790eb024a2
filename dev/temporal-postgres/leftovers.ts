import { basename } from 'node:path';
import { allProcesses, argumentsOf } from '../processes';
import { stopBy } from '../server-process';

/** Stops the server that a killed run left behind on this configuration folder, found by command line. */
export async function stopServerLeftovers(
  folder: string,
  onProgress: (message: string) => void,
): Promise<void> {
  for (const pid of await allProcesses()) {
    const [command = '', ...rest] = await argumentsOf(pid);
    // Where there is no /proc the arguments are one string.
    const serves =
      rest.length === 0
        ? command.includes(`/server --root ${folder} `)
        : basename(command) === 'server' && rest[0] === '--root' && rest[1] === folder;
    if (!serves) continue;
    onProgress(`stopping the Temporal that an earlier run left behind (pid ${pid})`);
    await stopTemporalServer(pid);
  }
}

/** Its state is in Postgres and in order even after SIGKILL. */
export async function stopTemporalServer(pid: number): Promise<void> {
  await stopBy('Temporal', pid, [
    ['SIGTERM', 20_000],
    ['SIGKILL', 5_000],
  ]);
}
