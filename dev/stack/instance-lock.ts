import { link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackFailure } from '../failure';
import { isRunning, processStatus } from '../processes';

/** What `stack.pid` holds. */
interface Holder {
  readonly pid: number;
  /** A pid is used again some day; together with its start the process is known for certain. */
  readonly startedAt: string;
  readonly apiUrl: string;
  readonly stopping: boolean;
}

export interface InstanceLock {
  /** Tells a start that comes now to wait for our end rather than give up. */
  markStopping(): Promise<void>;
  release(): Promise<void>;
}

/** A stack finishes requests for up to 15 s and gives Postgres 10 s. */
const STOPPING_PATIENCE_MS = 30_000;

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
  const draft = `${file}.${process.pid}`;
  const startedAt = (await processStatus(process.pid))?.startedAt ?? 'unknown';
  const describe = (stopping: boolean) => JSON.stringify({ pid: process.pid, startedAt, apiUrl, stopping });
  const patientUntil = Date.now() + STOPPING_PATIENCE_MS;
  let told = false;

  for (;;) {
    await writeFile(draft, describe(false));
    // A link appears with its content, and fails when the name is taken: no two processes can both have it.
    const taken = await link(draft, file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    await rm(draft, { force: true });
    if (taken) break;

    const text = await readFile(file, 'utf8').catch(() => '');
    const holder = await livingHolder(text);
    if (holder === undefined) {
      await removeStale(file, text);
      continue;
    }
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
    markStopping: async () => {
      await writeFile(draft, describe(true));
      await rename(draft, file);
    },
    release: () => rm(file, { force: true }),
  };
}

async function livingHolder(text: string): Promise<Holder | undefined> {
  let holder: Holder;
  try {
    holder = JSON.parse(text) as Holder;
  } catch {
    return undefined;
  }
  const status = await processStatus(holder.pid);
  return status?.startedAt === holder.startedAt && (await isRunning(holder.pid)) ? holder : undefined;
}

/** Another start may have taken over in between: then what was moved aside is not what was judged, and goes back. */
async function removeStale(file: string, judged: string): Promise<void> {
  const aside = `${file}.stale-${process.pid}`;
  try {
    await rename(file, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, 'utf8')) !== judged) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}

/** A process killed while it wrote a file leaves its draft, which ends in its pid. */
async function removeDrafts(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = /^(?:stack\.(?:pid|json)|postgres-password)\.(?:stale-)?(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !(await isRunning(Number(pid)))) await rm(join(dataDir, name), { force: true });
  }
}
