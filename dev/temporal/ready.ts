import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { StackFailure } from '../failure';

/** It takes one second on an idle machine. */
const START_LIMIT_MS = 60_000;

interface Waiting {
  readonly address: string;
  readonly namespace: string;
  readonly child: ChildProcess;
  /** Why it could not be run. */
  readonly fault: () => Error | undefined;
  readonly logFile: string;
  /** Where this start's part of the log begins. */
  readonly offset: number;
  readonly signal: AbortSignal | undefined;
}

/** Waits until the server knows its namespace. @returns `ready`, or why it will not be. */
export async function waitUntilReady(waiting: Waiting): Promise<'ready' | Error> {
  const { child, signal } = waiting;
  const deadline = Date.now() + START_LIMIT_MS;
  for (;;) {
    if (signal?.aborted) return new StackFailure('Stopped while starting.');
    const answers = await ask(waiting);
    if (waiting.fault()) return new StackFailure(`Temporal could not be run: ${waiting.fault()?.message}`);
    if (child.exitCode !== null || child.signalCode !== null) return new StackFailure(await ending(waiting));
    if (answers) return 'ready';
    if (Date.now() > deadline)
      return new StackFailure(`Temporal is not ready after ${START_LIMIT_MS / 1_000} s. ${where(waiting)}`);
    await sleep(50);
  }
}

async function ask({ address, namespace }: Waiting): Promise<boolean> {
  const connection = Connection.lazy({ address, connectTimeout: 1_000 });
  try {
    await connection.withDeadline(Date.now() + 1_000, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

async function ending(waiting: Waiting): Promise<string> {
  const log = await readFile(waiting.logFile).catch(() => Buffer.alloc(0));
  const lines = log.subarray(waiting.offset).toString().trim().split('\n').slice(-8);
  const tail = lines.map((line) => line.slice(0, 400)).join('\n');
  return `Temporal ended while starting. ${where(waiting)}\n${tail}`;
}

function where({ logFile }: Waiting): string {
  return `Its log is ${logFile}.`;
}
