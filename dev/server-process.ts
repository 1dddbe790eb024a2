import type { ChildProcess } from 'node:child_process';
import { StackFailure } from './failure';
import { signal, waitForEnd } from './processes';

/** Resolves when the process has ended, or could not be started. */
export async function endOf(child: ChildProcess): Promise<void> {
  await new Promise<void>((done) => {
    child.once('error', () => done());
    child.once('exit', () => done());
  });
}

/** What stops a server of ours, once however often it is called. */
export function stopOnce(
  child: ChildProcess,
  exited: Promise<void>,
  stopServer: (pid: number) => Promise<void>,
): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    child.ref();
    await stopServer(child.pid);
    await exited;
  };
  return () => (stopping ??= stop());
}

/**
 * Sends one signal after the other, each with its timeout in milliseconds, until the process has ended.
 * @throws StackFailure when it outlives them all.
 */
export async function stopBy(
  name: string,
  pid: number,
  steps: readonly (readonly [NodeJS.Signals, number])[],
): Promise<void> {
  for (const [step, patienceMs] of steps) {
    // A frozen process acts on a signal only once it continues.
    if (!signal(pid, step) || !signal(pid, 'SIGCONT')) return;
    if (await waitForEnd(pid, patienceMs)) return;
  }
  throw new StackFailure(`${name} (pid ${pid}) does not stop.`);
}
