import { readFileSync } from 'node:fs';
import { childrenOf } from '../../dev/processes';
import type { Figures } from './rounds';

/** Milliseconds per tick of /proc/<pid>/stat: USER_HZ is 100 on every Linux that Node runs on. */
const TICK_MS = 10;
/** Where user and system time are in /proc/<pid>/stat, counted from the state. */
const OWN = [11, 12] as const;
const ENDED_CHILDREN = [13, 14] as const;

/** Whose CPU is measured, by name; a Postgres with all of its sessions. */
export interface Measured {
  readonly processes: Readonly<Record<string, number | undefined>>;
  readonly postgres: Readonly<Record<string, number>>;
}

/**
 * Runs a task and measures the CPU milliseconds, user and system, that it takes, for each of `count` requests: `<name>_cpu_ms`.
 * Wall time is noisy; this hardly is. NaN where there is no /proc.
 */
export async function withCpu<T>(
  { processes, postgres }: Measured,
  count: number,
  task: () => Promise<T>,
): Promise<{ result: T; cpu: Figures }> {
  const read = async () => {
    const found: Record<string, number> = {};
    for (const [name, pid] of Object.entries(postgres)) found[name] = await postgresCpuMs(pid);
    for (const [name, pid] of Object.entries(processes)) found[name] = cpuMs(pid ?? 0, OWN);
    return found;
  };
  const before = await read();
  const result = await task();
  const cpu = Object.entries(await read()).map(
    ([name, ms]) => [`${name}_cpu_ms`, (ms - (before[name] ?? Number.NaN)) / count] as const,
  );
  return { result, cpu: Object.fromEntries(cpu) };
}

/** CPU so far of a Postgres with all of its sessions, those that have ended among them. */
async function postgresCpuMs(pid: number): Promise<number> {
  const sessions = await childrenOf(pid);
  // One that ends between the two readings is missed now, and counted with its parent from the next one on.
  const running = sessions.map((session) => cpuMs(session, OWN)).filter((ms) => !Number.isNaN(ms));
  return running.reduce((sum, ms) => sum + ms, cpuMs(pid, OWN) + cpuMs(pid, ENDED_CHILDREN));
}

/** CPU so far of the main thread of a process, which runs its event loop; to 10 ms. */
export const mainThreadMs = (pid: number): number => cpuMs(`${pid}/task/${pid}`, OWN);

/** Of one process with all of its threads, to 10 ms. */
function cpuMs(pid: number | string, [user, system]: readonly [number, number]): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name, in brackets, may itself contain blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[user]) + Number(fields[system])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}
