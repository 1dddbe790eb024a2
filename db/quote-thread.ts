import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { DatabaseConfig } from './connect';
import { packValues, type PackedValues } from './packed-values';
import type { QuoteValues } from './queries/insert-quotes';

/** To the thread: rows to store in one commit, or null: finish and end. */
export type QuoteOrder = { readonly id: number; readonly values: PackedValues } | null;

/** From the thread: null when it is ready, then what became of each order. A fault is an error's fields. */
export type QuoteReport = { readonly id: number; readonly fault?: ErrorFields } | null;
export type ErrorFields = Readonly<Record<string, unknown>> & { readonly message: string };

/** Inserts quotes on a thread of its own: the protocol of Postgres would cost the main one a sixth of its time. */
export interface QuoteThread {
  /** Stores all rows in one commit. @throws Error with what the database said, its `code` among it */
  readonly write: (values: QuoteValues) => Promise<void>;
  /** Finishes what is under way, for at most five seconds, and ends the thread. */
  readonly close: () => Promise<void>;
}

/** Longer than the thread waits for statements under way, in milliseconds. */
const LAST_PATIENCE_MS = 6_000;

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Starts the thread; resolves when it takes orders. Should it end by itself later, that is thrown where nobody catches:
 * a fault of the process, as if it had happened on the main thread, and nothing that was under way is answered.
 */
export async function openQuoteThread(database: DatabaseConfig): Promise<QuoteThread> {
  const worker = new Worker(join(__dirname, `quote-thread-main${extname(__filename)}`), {
    workerData: database,
    ...(extname(__filename) === '.ts' && { execArgv: fromSource() }),
  });
  const pending = new Map<number, Pending>();
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
  const post = (order: QuoteOrder) => worker.postMessage(order);
  let closing = false;
  let orders = 0;

  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve());
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the thread that stores quotes did not start')));
  });
  worker.on('message', (report: NonNullable<QuoteReport>) => {
    const order = pending.get(report.id);
    pending.delete(report.id);
    if (report.fault === undefined) order?.resolve();
    else order?.reject(Object.assign(new Error(report.fault.message), report.fault));
  });
  // Of errors nobody is told but by this: what an emitter's listener throws is uncaught.
  worker.on('error', (error) => {
    throw error;
  });
  worker.on('exit', (code) => {
    if (!closing) throw new Error(`the thread that stores quotes has ended with ${code}`);
  });

  return {
    write: (values) =>
      new Promise((resolve, reject) => {
        orders += 1;
        pending.set(orders, { resolve, reject });
        post({ id: orders, values: packValues(values) });
      }),
    async close() {
      closing = true;
      post(null);
      const timer = setTimeout(() => void worker.terminate(), LAST_PATIENCE_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Arguments for a thread that runs from TypeScript, whoever compiled this file. A profile covers the thread too. */
function fromSource(): string[] {
  const profile = process.execArgv.filter((argument) => argument.startsWith('--cpu-prof'));
  return ['--require', require.resolve('tsx/cjs'), ...profile];
}
