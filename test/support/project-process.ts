import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { emittedBy } from './emitted';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

/** A command of the project running as a process of its own, with what it prints. */
export type ProjectProcess = ReturnType<typeof startNode>;

export interface ProcessOptions {
  readonly cwd: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Give it the channel that bin/bootstrap.cjs gives to `start`. */
  readonly channel?: boolean;
}

/** Runs `node` with these arguments; of our own environment it gets PATH and where home and cache are. */
export function startNode(args: readonly string[], options: ProcessOptions) {
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
    /** @throws with all that was printed when it does not come in time or the process ends first. */
    waitFor: async (pattern: RegExp, timeoutMs = 20_000) => {
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

interface ServiceProcessOptions {
  /** For what it emits, and its folder. */
  readonly name: string;
  readonly args: readonly string[];
  /** What it reads, by the names of files in its folder. */
  readonly files: Readonly<Record<string, string>>;
  readonly environment: (file: (name: string) => string) => NodeJS.ProcessEnv;
  /** Standard output goes into a pipe that nobody reads. */
  readonly blockedOutput?: boolean | undefined;
}

/** A process of the service, which may be killed. */
export async function startServiceProcess(options: ServiceProcessOptions) {
  const { name, args, files } = options;
  const directory = await temporaryDirectory(name);
  const dismissWatchdog = startWatchdog(directory);
  const file = (own: string) => join(directory, own);
  for (const [own, text] of Object.entries(files)) await writeFile(file(own), text, { mode: 0o600 });
  // The directory on the command line is how the watchdog finds it.
  const child = spawn(process.execPath, ['--import', 'tsx', ...args, `--files=${directory}`], {
    cwd: join(__dirname, '../..'),
    env: { PATH: process.env['PATH'], ...options.environment(file) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written: string[] = [];
  const emit = emittedBy(name);
  const hear = (chunk: Buffer) => {
    written.push(chunk.toString());
    emit(chunk.toString());
  };
  if (!options.blockedOutput) child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const ended = (once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>).then(
    ([code, by]) => code ?? by,
  );
  const running = () => child.exitCode === null && child.signalCode === null;
  const end = (signal: NodeJS.Signals) => {
    if (running()) child.kill(signal);
    return ended;
  };
  return {
    child,
    directory,
    running,
    output: () => written.join(''),
    ended,
    end,
    async close() {
      await end('SIGKILL');
      dismissWatchdog();
      await removeDirectory(directory);
    },
  };
}
