import type { ChildProcess } from 'node:child_process';
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackFailure, stoppedWhileStarting } from './failure';
import { allProcesses, argumentsOf, signal as send, waitForEnd } from './processes';

/** How the processes of a server are known among all others, and how they are stopped. */
export interface ServerKind {
  readonly name: string;
  readonly program: string;
  /** The argument before the folder or file that holds its data. */
  readonly dataFlag: string;
  /** One signal after the other, each with its timeout in milliseconds. */
  readonly stopBy: readonly (readonly [NodeJS.Signals, number])[];
  /** Ends it at once. */
  readonly killBy: NodeJS.Signals;
}

export interface RunningServer {
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the server has ended, for whatever reason. */
  readonly exited: Promise<void>;
  /** Stops it in order, harder when that takes too long. Safe to call twice. */
  stop(): Promise<void>;
  /** Ends it at once, without waiting. */
  kill(): void;
}

interface Launch {
  readonly kind: ServerKind;
  /** Starts the program, which writes to this open file. */
  readonly spawn: (log: number) => ChildProcess;
  readonly logFile: string;
  /** Whether the server answers. @throws StackFailure when it never will. */
  readonly answers: () => Promise<boolean>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Called once when the start takes longer than three seconds. */
  readonly onSlow?: () => void;
}

const SLOW_AFTER_MS = 3_000;
const LOG_LIMIT_BYTES = 10_000_000;

/**
 * Starts a server and waits until it answers. It outlives a killed parent: the next start on its data stops it first.
 * @throws StackFailure with the end of its log when it does not start; nothing is left running.
 */
export async function launchServer(launch: Launch): Promise<RunningServer> {
  const { kind, logFile } = launch;
  const { log, offset } = await openLog(logFile);
  const child = launch.spawn(log.fd);
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  const exited = new Promise<void>((resolve) => child.once('error', () => resolve()).once('exit', resolve));
  await log.close();
  try {
    await untilReady(launch, child, offset, () => failure);
  } catch (error) {
    if (child.pid !== undefined) await stopServer(kind, child.pid);
    throw error;
  }
  child.unref();
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    child.ref();
    await stopServer(kind, child.pid);
    await exited;
  };
  return {
    pid: child.pid ?? 0,
    logFile,
    exited,
    stop: () => (stopping ??= stop()),
    kill: () => {
      child.kill(kind.killBy);
      // A frozen process acts on a signal only once it continues.
      child.kill('SIGCONT');
    },
  };
}

async function untilReady(
  { kind: { name }, logFile, answers, timeoutMs, signal, onSlow }: Launch,
  child: ChildProcess,
  logOffset: number,
  failure: () => Error | undefined,
): Promise<void> {
  const startedAt = Date.now();
  let told = false;
  for (;;) {
    if (signal?.aborted) throw stoppedWhileStarting();
    const ready = await answers();
    if (failure()) throw new StackFailure(`${name} could not be run: ${failure()?.message}`);
    if (child.exitCode !== null || child.signalCode !== null) {
      const tail = await tailOf(logFile, logOffset);
      throw new StackFailure(`${name} ended while starting. Its log is ${logFile}.\n${tail}`);
    }
    if (ready) return;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > timeoutMs)
      throw new StackFailure(`${name} is not ready after ${waitedMs} ms. Its log is ${logFile}.`);
    if (waitedMs > SLOW_AFTER_MS && !told) onSlow?.();
    told ||= waitedMs > SLOW_AFTER_MS;
    await sleep(30);
  }
}

/** Opens a log for appending, or anew when it is above 10 MB. @returns it and where this start's part begins. */
async function openLog(file: string): Promise<{ log: FileHandle; offset: number }> {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  const tooLong = size > LOG_LIMIT_BYTES;
  return { log: await open(file, tooLong ? 'w' : 'a', 0o600), offset: tooLong ? 0 : size };
}

async function tailOf(logFile: string, offset: number): Promise<string> {
  const log = await readFile(logFile).catch(() => Buffer.alloc(0));
  const lines = log.subarray(offset).toString().trim().split('\n').slice(-12);
  return lines.map((line) => line.slice(0, 400)).join('\n');
}

/** @throws StackFailure when the process outlives every signal. */
async function stopServer({ name, stopBy }: ServerKind, pid: number): Promise<void> {
  for (const [step, timeoutMs] of stopBy) {
    // A frozen process acts on a signal only once it continues.
    if (!send(pid, step) || !send(pid, 'SIGCONT')) return;
    if (await waitForEnd(pid, timeoutMs)) return;
  }
  throw new StackFailure(`${name} (pid ${pid}) does not stop.`);
}

/** Stops what a killed run left behind on this data. @throws StackFailure when it cannot be stopped. */
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

/** Found by command line, which proves that they are ours; a pid file may name another's process. */
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
  // Without /proc the arguments are one string, and the path of the program may contain blanks.
  const end = `${command} `.indexOf(` ${flag} ${data} `);
  return end >= 0 && `${command.slice(0, end)} `.includes(`/${program} `);
}
