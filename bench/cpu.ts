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

/** Reads the use so far; NaN where there is no /proc. Sessions that ended meanwhile are missed, and ours do not end. */
export async function cpuUse(serverPid: number, postgresPid: number): Promise<CpuUse> {
  const own = process.cpuUsage();
  const sessions = await childrenOf(postgresPid);
  const postgres = [postgresPid, ...sessions].map(ticksOf).reduce((sum, ticks) => sum + ticks, 0);
  return {
    server: ticksOf(serverPid) * TICK_MS,
    postgres: postgres * TICK_MS,
    load: (own.user + own.system) / 1000,
  };
}

function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name, in brackets, may itself hold blanks and brackets; utime and stime are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
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
