import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../testbed/until';
import { answersOk } from '../../testbed/http-call';
import type { Bench } from './bench';

export interface ChildOptions {
  readonly args?: readonly string[];
  /** All of its environment but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
}

const ROOT = join(__dirname, '../..');

/**
 * Starts a file of the project as a process of its own, which can be sent messages, and ends it with the bench. Its standard
 * output goes into a file, as a log collector reads it.
 */
export function startChild(bench: Bench, file: string, options: ChildOptions = {}): ChildProcess {
  const { args = [], env = {}, nodeArgs = [] } = options;
  const log = openSync(join(bench.directory, `${file.replaceAll('/', '-')}.log`), 'a');
  const child = fork(join(ROOT, file), [...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
    execArgv: [...nodeArgs, '--import', 'tsx'],
    stdio: ['ignore', log, 'inherit', 'ipc'],
  });
  bench.onEnd(() => endChild(child));
  return child;
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

/** Waits until a process answers 200 at an address. @throws after a minute. */
export const answers = (url: string) => until(() => answersOk(url), `${url} answers`, 60_000, 50);

/** Ends a process in order. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exit;
  clearTimeout(timer);
}

/** In such a process: answers each message, sends one when it is ready, and ends when asked to, or with the bench. */
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
