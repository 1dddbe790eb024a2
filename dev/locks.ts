import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackFailure, stoppedWhileStarting } from './failure';
import { isRunning } from './processes';

/** A name that the system frees when its process ends; elsewhere than on Linux a file, which a killed process leaves. */
function socketOf(path: string): string {
  const hash = createHash('sha256').update(resolve(path)).digest('hex').slice(0, 32);
  return process.platform === 'linux' ? `\0pfqs-${hash}` : join(tmpdir(), `pfqs-${hash}`);
}

/**
 * Makes this process the only one that listens for a path, unless another does.
 * @param facts told to others that try
 * @returns what frees the path, or the facts of the process that holds it
 */
async function claim<Facts>(path: string, facts: () => Facts): Promise<(() => Promise<void>) | Facts> {
  const socket = socketOf(path);
  for (;;) {
    const server = createServer((asking) => asking.on('error', () => undefined).end(JSON.stringify(facts())));
    try {
      await once(server.listen(socket), 'listening');
      server.unref();
      return () => new Promise((done) => server.close(() => done()));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
    // Empty or refused: it has ended meanwhile.
    const told = await text(connect(socket)).catch(() => '');
    if (told !== '') return JSON.parse(told) as Facts;
    if (process.platform !== 'linux') await rm(socket, { force: true });
  }
}

/** Runs a task while no other process runs one for this path; others wait for it, and are told so once. */
export async function inTurn<T>(
  path: string,
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
    const held = await claim(path, () => ({ pid: process.pid }));
    if (typeof held === 'function') {
      try {
        return await task();
      } finally {
        await held();
      }
    }
    if (!told) options.onProgress?.(`waiting for process ${held.pid}, ${options.what}`);
    told = true;
    await sleep(200);
    if (options.signal?.aborted) throw stoppedWhileStarting();
  }
}

interface InstanceLock {
  /** A start that comes now waits for our end and does not give up. */
  markStopping(): void;
  release(): Promise<void>;
}

/** A stack finishes deliveries for up to 60 s and requests for 15 s; it gives Temporal and Postgres 10 s each. */
const STOPPING_TIMEOUT_MS = 100_000;

/**
 * Makes this process the only stack on a data directory.
 * @throws StackFailure naming the address and the pid when a stack already runs there.
 */
export async function lockInstance(
  dataDir: string,
  apiUrl: string,
  print: (line: string) => void,
): Promise<InstanceLock> {
  await mkdir(dataDir, { recursive: true });
  const waitUntil = Date.now() + STOPPING_TIMEOUT_MS;
  let stopping = false;
  let told = false;
  for (;;) {
    const held = await claim(dataDir, () => ({ pid: process.pid, apiUrl, stopping }));
    if (typeof held === 'function') {
      await removeDrafts(dataDir);
      return { markStopping: () => void (stopping = true), release: held };
    }
    if (!held.stopping || Date.now() > waitUntil)
      throw new StackFailure(
        `The stack already runs on ${dataDir}: ${held.apiUrl}, process ${held.pid}. Stop it with Ctrl-C in its ` +
          `terminal or kill ${held.pid}, or set DATA_DIR (and the ports) to run another.`,
      );
    if (!told) print(`Waiting for process ${held.pid}, which is stopping ...`);
    told = true;
    await sleep(100);
  }
}

/** A process killed while it wrote a file leaves its draft, which ends in its pid. */
async function removeDrafts(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const [, pid] =
      /^(?:stack\.json|postgres-password|database-logins|webhook-keys)\.(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !(await isRunning(Number(pid)))) await rm(join(dataDir, name), { force: true });
  }
}
