import { spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './until';
import { emittedBy } from './emitted';
import { watchedDirectory } from './watchdog';

/** A program that runs as a process of its own. @param options.heard is told what it prints, as it comes */
export function startProgram(
  [command, ...args]: readonly [string, ...string[]],
  {
    heard = () => undefined,
    ...options
  }: Pick<SpawnOptions, 'cwd' | 'env' | 'stdio'> & { readonly heard?: (text: string) => void },
) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const written = { all: '', stdout: '' };
  const hear = (chunk: Buffer) => {
    written.all += chunk.toString();
    heard(chunk.toString());
  };
  child.stdout?.on('data', (chunk: Buffer) => (written.stdout += chunk.toString())).on('data', hear);
  child.stderr?.on('data', hear);
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal));
    // There is no such program.
    child.once('error', (error) => {
      written.all += error.message;
      resolve(null);
    });
  });
  const running = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    child,
    pid: child.pid ?? 0,
    running,
    /** All that it has printed. */
    output: () => written.all,
    stdout: () => written.stdout,
    /** Exit code, or the signal that ended it. */
    ended,
    /** Sends a signal, unless it has ended. @returns `ended` */
    end: (signal: NodeJS.Signals) => {
      if (running()) child.kill(signal);
      return ended;
    },
  };
}

/** A command of the project. */
export type ProjectProcess = ReturnType<typeof startNode>;

export interface ProcessOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Give it the channel that bin/bootstrap.cjs gives to `start`. */
  readonly channel?: boolean;
}

/** Runs `node` with these arguments; of our own environment it gets PATH and where home and cache are. */
export function startNode(args: readonly string[], { cwd, environment, channel }: ProcessOptions) {
  const { PATH = '', HOME = '', XDG_CACHE_HOME = '' } = process.env;
  const program = startProgram([process.execPath, ...args], {
    cwd,
    env: { PATH, HOME, XDG_CACHE_HOME, ...environment },
    stdio: ['ignore', 'pipe', 'pipe', ...(channel ? ['ipc' as const] : [])],
  });
  const { child, output, running } = program;
  // Not the event `close`, which never comes once we have closed the channel.
  const streams = [child.stdout, child.stderr].map((stream) => stream && once(stream, 'close'));
  return {
    ...program,
    /** The same, once all that it printed is there. */
    ended: Promise.all([program.ended, ...streams]).then(([code]) => code),
    /** @throws with all that was printed when it does not come in time or the process ends first. */
    waitFor: async (pattern: RegExp, timeoutMs = 60_000) => {
      const deadline = Date.now() + timeoutMs;
      while (!pattern.test(output())) {
        if (!running() || Date.now() > deadline)
          throw new Error(
            `${pattern} was not printed (${running() ? 'still running' : 'ended'}):\n${output()}`,
          );
        await sleep(20);
      }
    },
  };
}

export interface ProgramWithFiles {
  /** For what it emits, and its folder. */
  readonly name: string;
  /** The folder has to be on it, which is how the watchdog finds the process. */
  readonly command: (file: (name: string) => string) => readonly [string, ...string[]];
  /** What it reads, by the names of files in its folder. */
  readonly files?: Readonly<Record<string, string>>;
  readonly environment?: (file: (name: string) => string) => NodeJS.ProcessEnv;
  /** Waits for this, for at most a minute. @param printed so far. Default: it is not waited for. */
  readonly serves?: (printed: string) => boolean | Promise<boolean>;
}

/** It takes two seconds; on a machine that is drowned in work many more. */
const START_MS = 60_000;

/** A program with a folder of its own, which may be killed. @throws with its output when it ends, or does not serve in time. */
export async function startWithFiles({
  name,
  command,
  files = {},
  environment = () => ({}),
  serves = () => true,
}: ProgramWithFiles) {
  const { directory, remove } = await watchedDirectory(name);
  const file = (own: string) => join(directory, own);
  for (const [own, text] of Object.entries(files)) await writeFile(file(own), text, { mode: 0o600 });
  const program = startProgram(command(file), {
    cwd: join(__dirname, '..'),
    env: { PATH: process.env['PATH'], ...environment(file) },
    heard: emittedBy(name),
  });
  const close = async () => {
    await program.end('SIGKILL');
    await remove();
  };
  const started = async () => serves(program.output());
  await until(async () => !program.running() || started(), 'it serves', START_MS).catch(() => undefined);
  if (!(await started())) {
    await close();
    throw new Error(`${name} did not start:\n${program.output()}`);
  }
  return { ...program, file, close };
}
