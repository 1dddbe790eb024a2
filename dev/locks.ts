import { link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackFailure, stoppedWhileStarting } from './failure';
import { isRunning, processStatus } from './processes';

/** Who holds a claim file. The system uses a pid again; pid and start time together name one process. */
interface Holder {
  readonly pid: number;
  readonly startedAt: string;
}

/**
 * Makes `file` name this process, with these facts, unless a living process holds it. What a killed one left is taken
 * over. Removing the file gives it up.
 * @returns undefined when the file is ours, else who holds it.
 */
async function claimFile<Facts extends object>(
  file: string,
  facts: Facts,
): Promise<(Holder & Facts) | undefined> {
  const draft = draftOf(file);
  for (;;) {
    await writeFile(draft, await describe(facts));
    // A link appears with its content, and fails when the name is taken: no two processes can both have it.
    const taken = await link(draft, file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    await rm(draft, { force: true });
    if (taken) return undefined;

    const text = await readFile(file, 'utf8').catch(() => '');
    const holder = await livingHolder<Facts>(text);
    if (holder) return holder;
    await removeStale(file, text);
  }
}

/** Changes the facts in a file that this process holds. */
async function restateClaim(file: string, facts: object): Promise<void> {
  await writeFile(draftOf(file), await describe(facts));
  await rename(draftOf(file), file);
}

/** A process killed while it writes leaves this behind; the name ends in its pid. */
function draftOf(file: string): string {
  return `${file}.${process.pid}`;
}

async function describe(facts: object): Promise<string> {
  const startedAt = (await processStatus(process.pid))?.startedAt ?? 'unknown';
  return JSON.stringify({ pid: process.pid, startedAt, ...facts });
}

async function livingHolder<Facts>(text: string): Promise<(Holder & Facts) | undefined> {
  let holder: Holder & Facts;
  try {
    holder = JSON.parse(text) as Holder & Facts;
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

/**
 * Runs a task while this process holds a lock file; others wait for it, and are told so once. What a killed process
 * left is taken over.
 */
export async function inTurn<T>(
  file: string,
  options: {
    /** What the holder is busy with: "which gets …". */
    readonly what: string;
    readonly onProgress?: ((message: string) => void) | undefined;
    readonly signal?: AbortSignal | undefined;
  },
  task: () => Promise<T>,
): Promise<T> {
  let told = false;
  for (;;) {
    const holder = await claimFile(file, {});
    if (holder === undefined) break;
    if (!told) options.onProgress?.(`waiting for process ${holder.pid}, ${options.what}`);
    told = true;
    await sleep(200);
    if (options.signal?.aborted) throw stoppedWhileStarting();
  }
  try {
    return await task();
  } finally {
    await rm(file, { force: true });
  }
}

interface InstanceLock {
  /** A start that comes now waits for our end and does not give up. */
  markStopping(): Promise<void>;
  release(): Promise<void>;
}

/** A stack finishes deliveries for up to 60 s and requests for 15 s; it gives Temporal and Postgres 10 s each. */
const STOPPING_TIMEOUT_MS = 100_000;

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
  const waitUntil = Date.now() + STOPPING_TIMEOUT_MS;
  let told = false;
  for (;;) {
    const holder = await claimFile(file, { apiUrl, stopping: false });
    if (holder === undefined) break;
    if (!holder.stopping || Date.now() > waitUntil)
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
