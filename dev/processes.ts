import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** What the system shows of other processes: /proc on Linux, `ps` elsewhere (macOS). */
interface ProcessStatus {
  readonly parent: number;
  /** One letter, `Z` for a process that has ended and whose parent has not collected it. */
  readonly state: string;
  /** Those that still run; 1 where the system does not say. */
  readonly threads: number;
}

const run = promisify(execFile);
const hasProc = process.platform === 'linux';

/** @returns undefined when there is no such process. */
async function processStatus(pid: number): Promise<ProcessStatus | undefined> {
  try {
    if (!hasProc) {
      const { stdout } = await run('ps', ['-o', 'ppid=,state=', '-p', String(pid)]);
      const [parent = '', state = ''] = stdout.trim().split(/\s+/);
      return { parent: Number(parent), state: state.charAt(0), threads: 1 };
    }
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The command name, in brackets, may itself contain blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', parent: Number(fields[1]), threads: Number(fields[17]) };
  } catch {
    return undefined;
  }
}

/** True while it runs. A zombie has ended, unless its threads are still ending: they keep its ports. */
export async function isRunning(pid: number): Promise<boolean> {
  const status = await processStatus(pid);
  return status !== undefined && (status.state !== 'Z' || status.threads > 1);
}

/** The argument list of a process, empty when it has ended or is not ours to see. */
export async function argumentsOf(pid: number): Promise<string[]> {
  try {
    if (hasProc) return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1);
    const { stdout } = await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)]);
    return [stdout.trim()];
  } catch {
    return [];
  }
}

export async function allProcesses(): Promise<number[]> {
  const names = hasProc
    ? await readdir('/proc')
    : (await run('ps', ['-axo', 'pid='])).stdout.split('\n').map((line) => line.trim());
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Processes by their parents. */
async function families(): Promise<(parent: number) => number[]> {
  const pids = await allProcesses();
  const statuses = await Promise.all(pids.map((pid) => processStatus(pid)));
  return (parent) => pids.filter((_, index) => statuses[index]?.parent === parent);
}

export const childrenOf = async (parent: number): Promise<number[]> => (await families())(parent);

/** These and everything below them. */
export async function withChildren(pids: readonly number[]): Promise<number[]> {
  const below = await families();
  const found = [...pids];
  // What is added is visited too.
  for (const parent of found) found.push(...below(parent));
  return found;
}

/** Sends a signal; false when there is no such process any more. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** @returns whether the process had ended within the time. */
export async function waitForEnd(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (await isRunning(pid)) {
    if (Date.now() > deadline) return false;
    await sleep(25);
  }
  return true;
}
