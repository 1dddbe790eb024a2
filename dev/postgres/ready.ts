import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { StackFailure } from '../failure';

/** Recovery after a crash replays at most the write-ahead log since the last checkpoint: seconds, not minutes. */
const START_LIMIT_MS = 120_000;
const SLOW_AFTER_MS = 3_000;

interface Waiting {
  readonly url: string;
  readonly dataDir: string;
  readonly child: ChildProcess;
  readonly logFile: string;
  /** Where this start's part of the log begins. */
  readonly offset: number;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** Waits until the server answers a query. @returns `ready`, or why it will not be. */
export async function waitUntilReady(waiting: Waiting): Promise<'ready' | Error> {
  const { child, signal } = waiting;
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  const startedAt = Date.now();
  let told = false;
  for (;;) {
    if (signal?.aborted) return new StackFailure('Stopped while starting.');
    if (failure) return new StackFailure(`Postgres could not be run: ${failure.message}`);
    if (child.exitCode !== null || child.signalCode !== null) return new StackFailure(await ending(waiting));
    const answer = await ask(waiting);
    if (answer !== 'not yet') return answer;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > START_LIMIT_MS)
      return new StackFailure(`Postgres is not ready after ${waitedMs} ms. ${where(waiting)}`);
    if (waitedMs > SLOW_AFTER_MS && !told) {
      waiting.onProgress('Postgres is recovering from a crash');
      told = true;
    }
    await sleep(30);
  }
}

async function ask({ url, dataDir }: Waiting): Promise<'ready' | 'not yet' | Error> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => undefined });
  try {
    const [row] = await sql<{ directory: string }[]>`select current_setting('data_directory') as directory`;
    // Another server on this port: ours is about to say that it cannot bind.
    return row?.directory === dataDir ? 'ready' : 'not yet';
  } catch (error) {
    // invalid_password
    if ((error as { code?: string }).code !== '28P01') return 'not yet';
    return new StackFailure(
      `Postgres in ${dataDir} refuses its password: it was created with another one. Restore it, or set DATA_DIR to another folder.`,
    );
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function ending(waiting: Waiting): Promise<string> {
  const log = await readFile(waiting.logFile).catch(() => Buffer.alloc(0));
  const from = log.length < waiting.offset ? 0 : waiting.offset;
  const tail = log.subarray(from).toString().trim().split('\n').slice(-12).join('\n');
  return `Postgres ended while starting. ${where(waiting)}\n${tail}`;
}

function where({ logFile }: Waiting): string {
  return `Its log is ${logFile}.`;
}
