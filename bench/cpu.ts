import { readFileSync } from 'node:fs';
import { childrenOf } from '../dev/processes';

/** Milliseconds per tick of /proc/<pid>/stat: USER_HZ is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** CPU milliseconds, user and system, that processes have used so far. Wall time is noisy; this hardly is. */
export interface CpuUse {
  /** The process that answers. */
  readonly server: number;
  /** Postgres with all of its sessions. */
  readonly postgres: number;
  /** This process: the load generator. */
  readonly load: number;
}

/** Reads the use so far; NaN where there is no /proc. */
export async function cpuUse(serverPid: number, postgresPid: number): Promise<CpuUse> {
  const own = process.cpuUsage();
  return {
    server: processCpuMs(serverPid),
    postgres: await postgresCpuMs(postgresPid),
    load: (own.user + own.system) / 1000,
  };
}

/** Of a Postgres with all of its sessions, those that have ended too. */
export async function postgresCpuMs(pid: number): Promise<number> {
  const sessions = await childrenOf(pid);
  // One that ends between the two readings is missed now, and counted with its parent from the next one on.
  const running = sessions.map(processCpuMs).filter((ms) => !Number.isNaN(ms));
  return running.reduce((sum, ms) => sum + ms, processCpuMs(pid) + cpuMs(pid, ENDED_CHILDREN));
}

/** Of one process with all of its threads, to 10 ms; NaN where there is no /proc. */
export function processCpuMs(pid: number): number {
  return cpuMs(pid, OWN);
}

/** Where user and system time stand in /proc/<pid>/stat, counted from the state. */
const OWN = [11, 12] as const;
const ENDED_CHILDREN = [13, 14] as const;

function cpuMs(pid: number, [user, system]: readonly [number, number]): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name, in brackets, may itself hold blanks and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[user]) + Number(fields[system])) * TICK_MS;
  } catch {
    return Number.NaN;
  }
}

/** What was used between two readings, per request. */
export function cpuPerRequest(before: CpuUse, after: CpuUse, requests: number): CpuUse {
  return {
    server: (after.server - before.server) / requests,
    postgres: (after.postgres - before.postgres) / requests,
    load: (after.load - before.load) / requests,
  };
}
