import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** A command of the project running as a process of its own, with what it prints. */
export interface ProjectProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Standard output and error so far. */
  output(): string;
  stdout(): string;
  /** @throws with all that was printed when it does not come in time or the process ends first. */
  waitFor(pattern: RegExp, timeoutMs?: number): Promise<void>;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

export interface ProcessOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Give it the channel that bin/bootstrap.cjs gives to `start`. */
  readonly channel?: boolean;
}

/** Runs `node` with these arguments; of our own environment it gets PATH and where home and cache are. */
export function startNode(args: readonly string[], options: ProcessOptions): ProjectProcess {
  const { PATH = '', HOME = '', XDG_CACHE_HOME = '' } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: options.cwd,
    env: { PATH, HOME, XDG_CACHE_HOME, ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe', ...(options.channel ? ['ipc' as const] : [])],
  });
  let all = '';
  let stdout = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    all += chunk.toString();
    stdout += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => (all += chunk.toString()));
  // Not the event `close`, which never comes once we have closed the channel.
  const streams = [child.stdout, child.stderr].map((stream) => stream && once(stream, 'close'));
  const ended = Promise.all([once(child, 'exit'), ...streams]).then(
    ([[code, signal]]) => (code ?? signal) as number | NodeJS.Signals,
  );
  return {
    child,
    pid: child.pid ?? 0,
    output: () => all,
    stdout: () => stdout,
    ended,
    waitFor: async (pattern, timeoutMs = 20_000) => {
      const deadline = Date.now() + timeoutMs;
      while (!pattern.test(all)) {
        const over = child.exitCode !== null || child.signalCode !== null;
        if (over || Date.now() > deadline)
          throw new Error(`${pattern} was not printed (${over ? 'ended' : 'still running'}):\n${all}`);
        await sleep(20);
      }
    },
  };
}
