import { basename } from 'node:path';
import { allProcesses, argumentsOf } from './processes';
import { stopBy } from './server-process';

/** How the processes of a server are known among all others, and how they are stopped. */
export interface ServerKind {
  /** For people. */
  readonly name: string;
  readonly program: string;
  /** The argument before the folder or file that holds its data. */
  readonly dataFlag: string;
  /** One signal after the other, each with its timeout in milliseconds. */
  readonly stopBy: readonly (readonly [NodeJS.Signals, number])[];
}

/** @throws StackFailure when it outlives every signal. */
export const stopServer = (kind: ServerKind, pid: number): Promise<void> =>
  stopBy(kind.name, pid, kind.stopBy);

/**
 * Stops what a killed run left behind on this data. @throws StackFailure when it cannot be stopped.
 * @param onProgress told what is stopped.
 */
export async function stopLeftoversOf(
  kind: ServerKind,
  data: string,
  onProgress: (message: string) => void,
): Promise<void> {
  for (const pid of await processesOn(kind, data)) {
    onProgress(`stopping the ${kind.name} that an earlier run left behind (pid ${pid})`);
    await stopServer(kind, pid);
  }
}

/** Found by command line, which is proof that they are ours; a pid file alone may name a stranger. */
export async function processesOn(
  { program, dataFlag }: Pick<ServerKind, 'program' | 'dataFlag'>,
  data: string,
): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await allProcesses()) {
    if (runs(await argumentsOf(pid), program, [dataFlag, data])) found.push(pid);
  }
  return found;
}

function runs(args: readonly string[], program: string, [flag, data]: readonly [string, string]): boolean {
  const [command = '', ...rest] = args;
  if (rest.length > 0)
    return basename(command) === program && rest.some((one, at) => one === flag && rest[at + 1] === data);
  // Where there is no /proc the arguments are one string, and the path of the program may hold blanks.
  const end = `${command} `.indexOf(` ${flag} ${data} `);
  return end >= 0 && `${command.slice(0, end)} `.includes(`/${program} `);
}
