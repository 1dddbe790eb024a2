import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { StackFailure } from '../failure';

export interface ProgramOptions {
  readonly cwd?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** All of its environment; by default ours. */
  readonly env?: Readonly<Record<string, string>>;
  /** Fed to its standard input. */
  readonly input?: Readable;
  /** Told each line of its standard error as it comes. */
  readonly onLine?: (line: string) => void;
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
    if (options.onLine) createInterface({ input: child.stderr }).on('line', options.onLine);
    let why: Error | undefined;
    const end = (reason: Error) => {
      why ??= reason;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    };
    const abort = () => end(new StackFailure('Stopped while starting.'));
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
