import { adviceOn } from '../failure';
import type { Stack } from './types';

/**
 * Runs a stack until a signal, or until the bootstrap above is gone (its IPC channel closes). The first signal stops
 * in order, during the start too; a further Ctrl-C ends everything at once. What it and its children write is for their
 * user alone. Ends the process: 0 after an orderly stop,
 * 1 when the stack could not start, broke or did not stop cleanly, 130 after the second Ctrl-C.
 */
export async function runStack(
  start: (signals: { signal: AbortSignal; killSignal: AbortSignal }) => Promise<Stack>,
): Promise<never> {
  // Keys, passwords, certificates, logs and databases are written, by programs too that know no modes.
  process.umask(0o077);
  const asked = new AbortController();
  const killer = new AbortController();
  let stack: Stack | undefined;
  let failed = false;
  const ask = (why: string) => {
    if (asked.signal.aborted) return;
    console.log(`\n${why}: stopping (Ctrl-C again to stop at once) ...`);
    asked.abort();
  };
  const fail = (error: unknown) => {
    failed = true;
    console.error(describe(error));
    ask('Something broke');
  };
  process.on('SIGINT', () => {
    if (!asked.signal.aborted) {
      ask('Ctrl-C');
      return;
    }
    killer.abort();
    process.exit(130);
  });
  process.on('SIGTERM', () => ask('Asked to end'));
  process.on('SIGHUP', () => ask('The terminal is gone'));
  process.on('disconnect', () => ask('npm is gone'));
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  // A closed terminal must not keep us from stopping.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

  try {
    stack = await start({ signal: asked.signal, killSignal: killer.signal });
    const stopped = new Promise<undefined>((resolve) => {
      if (asked.signal.aborted) resolve(undefined);
      asked.signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    const broken = await Promise.race([stopped, stack.broken]);
    if (broken) fail(broken);
    await stack.stop();
  } catch (error) {
    if (!asked.signal.aborted || stack) {
      failed = true;
      console.error(describe(error));
    }
  }
  if (stack || !failed) console.log(failed ? 'Stopped after a failure.' : 'Stopped.');
  return process.exit(failed ? 1 : 0);
}

function describe(error: unknown): string {
  return adviceOn(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
}
