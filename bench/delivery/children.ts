import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';

export interface ChildOptions {
  readonly args?: readonly string[];
  /** All of its environment but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
  /** Gets its standard output, as a file that a log collector reads. */
  readonly logFile: string;
}

/** Starts a file of the project as a process of its own, which can be sent messages. */
export function startChild(file: string, options: ChildOptions): ChildProcess {
  const { args = [], env = {}, nodeArgs = [], logFile } = options;
  return fork(join(__dirname, '../..', file), [...args], {
    cwd: join(__dirname, '../..'),
    env: { PATH: process.env['PATH'], ...env },
    execArgv: [...nodeArgs, '--import', 'tsx'],
    stdio: ['ignore', openSync(logFile, 'a'), 'inherit', 'ipc'],
  });
}

/** Its next message. @throws when it ends instead. */
export async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const ended = new AbortController();
  const exit = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal: ended.signal }), exit])) as [T];
    return message;
  } finally {
    exit.catch(() => undefined);
    ended.abort();
  }
}

/** Ends a process in order, so that a profile of it is written. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exit;
  clearTimeout(timer);
}

/** In such a process: answers each message, says that it is ready, and ends in order when asked to, or with who started it. */
export function serveMessages(run: (message: never) => Promise<object>, close: () => Promise<unknown>): void {
  process.on('message', (message) => {
    run(message as never).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.on('disconnect', () => process.exit(0));
  process.on('SIGTERM', () => void close().then(() => process.exit(0)));
  process.send?.({ ready: true });
}
