import { spawn } from 'node:child_process';
import { access, constants, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { StackFailure, stoppedWhileStarting } from '../failure';

/**
 * Where programs are kept that were built or downloaded once, in `XDG_CACHE_HOME` or the user's cache folder.
 * @param wanted another folder.
 * @throws StackFailure when it cannot be written.
 */
export async function toolsFolder(wanted?: string): Promise<string> {
  // oxlint-disable-next-line node/no-process-env -- the user's, as the home folder is (XDG base directory specification)
  const cacheHome = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const path = resolve(wanted ?? join(cacheHome, 'partner-finance-quote-service'));
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await access(path, constants.W_OK | constants.X_OK);
    return path;
  } catch {
    throw new StackFailure(`${path} cannot be written. Set XDG_CACHE_HOME to a folder of yours.`);
  }
}

interface ProgramOptions {
  readonly cwd?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** All of its environment; by default ours. */
  readonly env?: Readonly<Record<string, string>>;
  /** Fed to its standard input. */
  readonly input?: Readable;
}

/**
 * Runs a program in a process group of its own, which ends as a whole when time is over or the signal aborts.
 * @returns its standard output.
 * @throws with the end of what it said when it cannot be run, fails or takes too long.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<string> {
  const { input, signal } = options;
  return new Promise((resolve, reject) => {
    const { cwd, env } = options;
    const child = spawn(program, args, { cwd, env, detached: true, stdio: 'pipe' });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-4_000)));
    let why: Error | undefined;
    const end = (reason: Error) => {
      why ??= reason;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    };
    const abort = () => end(stoppedWhileStarting());
    const timer = setTimeout(
      () => end(new Error(`${program} took longer than ${options.timeoutMs / 1_000} s`)),
      options.timeoutMs,
    );
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    // The program may end before it has read all.
    child.stdin.on('error', () => undefined);
    if (input) {
      input.on('error', end);
      input.pipe(child.stdin);
    } else child.stdin.end();

    const settle = (error: Error | undefined) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      if (error) reject(error);
      else resolve(stdout);
    };
    child.once('error', settle);
    child.once('close', (code, by) =>
      settle(
        why ?? (code === 0 ? undefined : new Error(`${program} ended with ${code ?? by}: ${tail(stderr)}`)),
      ),
    );
  });
}

function tail(text: string): string {
  return text.trim().split('\n').slice(-5).join('\n');
}

/** 2 to 5 minutes on two idle cores, everything fetched anew; 9 were seen on busy ones. */
const BUILD_LIMIT_MS = 1_200_000;
/** Between two lines that say that it is still under way. */
const LINE_MS = 60_000;

interface GoInstall {
  /** `path@version`, all of one module. */
  readonly packages: readonly string[];
  /** What is built, and how long that takes, for people. */
  readonly what: string;
  /** Gets the programs. */
  readonly folder: string;
  readonly onProgress: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Builds programs with the Go on this machine. @throws when there is no Go, or it fails. */
export async function goInstall({ packages, what, folder, onProgress, signal }: GoInstall): Promise<void> {
  const go = await findGo();
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1_000);
  onProgress(`building ${what}, this once`);
  const ticker = setInterval(() => onProgress(`still building, ${seconds()} s`), LINE_MS);
  // `env`, so that Go keeps what the user has set (a proxy, say). With GOOS or GOARCH it would refuse GOBIN.
  const environment = ['-u', 'GOOS', '-u', 'GOARCH', `GOBIN=${folder}`, ...(await toolchain(go))];
  const install = [go, 'install', '-trimpath', '-ldflags=-s -w', ...packages];
  try {
    // What is started meanwhile goes first.
    await runProgram('nice', ['env', ...environment, ...install], {
      cwd: folder,
      timeoutMs: BUILD_LIMIT_MS,
      signal,
    });
  } finally {
    clearInterval(ticker);
  }
  onProgress(`built in ${seconds()} s`);
}

/**
 * Temporal's server wants a newer Go than many machines have; Go then fetches that by itself, except where a distribution has
 * switched it off. What the user has chosen stays.
 */
async function toolchain(go: string): Promise<string[]> {
  // Go before 1.23 does not know the flag.
  const chosen = await runProgram(go, ['env', '-changed', 'GOTOOLCHAIN'], { timeoutMs: 10_000 }).catch(
    () => '',
  );
  return chosen.trim() === '' ? ['GOTOOLCHAIN=auto'] : [];
}

/** Its installer puts it where the PATH of many accounts does not lead. */
export async function findGo(): Promise<string> {
  for (const go of ['go', '/usr/local/go/bin/go']) {
    try {
      await runProgram(go, ['version'], { timeoutMs: 10_000 });
      return go;
    } catch {
      // The next.
    }
  }
  throw new Error('there is no Go');
}
