import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimFile, restateClaim } from '../claim-file';
import { StackFailure } from '../failure';
import { isRunning } from '../processes';

export interface InstanceLock {
  /** Tells a start that comes now to wait for our end rather than give up. */
  markStopping(): Promise<void>;
  release(): Promise<void>;
}

/** A stack finishes deliveries for up to 60 s and requests for 15 s; it gives Temporal and Postgres 10 s each. */
const STOPPING_PATIENCE_MS = 100_000;

/**
 * Makes this process the only stack on a data directory. What a killed one left is taken over.
 * @throws StackFailure naming the address and the pid when a stack already runs there.
 */
export async function lockInstance(
  dataDir: string,
  apiUrl: string,
  print: (line: string) => void,
): Promise<InstanceLock> {
  await mkdir(dataDir, { recursive: true });
  const file = join(dataDir, 'stack.pid');
  const patientUntil = Date.now() + STOPPING_PATIENCE_MS;
  let told = false;
  for (;;) {
    const holder = await claimFile(file, { apiUrl, stopping: false });
    if (holder === undefined) break;
    if (!holder.stopping || Date.now() > patientUntil)
      throw new StackFailure(
        `The stack already runs on ${dataDir}: ${holder.apiUrl}, process ${holder.pid}. Stop it with Ctrl-C in its ` +
          `terminal or kill ${holder.pid}, or set DATA_DIR (and the ports) to run another.`,
      );
    if (!told) print(`Waiting for process ${holder.pid}, which is stopping ...`);
    told = true;
    await sleep(100);
  }
  await removeDrafts(dataDir);
  return {
    markStopping: () => restateClaim(file, { apiUrl, stopping: true }),
    release: () => rm(file, { force: true }),
  };
}

/** A process killed while it wrote a file leaves its draft, which ends in its pid. */
async function removeDrafts(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid =
      /^(?:stack\.(?:pid|json)|postgres-password|database-logins|webhook-keys)\.(?:stale-)?(\d+)$/.exec(
        name,
      )?.[1];
    if (pid !== undefined && !(await isRunning(Number(pid)))) await rm(join(dataDir, name), { force: true });
  }
}
