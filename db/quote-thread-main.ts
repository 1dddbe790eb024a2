import { parentPort, workerData } from 'node:worker_threads';
import { connectDatabase, type DatabaseConfig } from './connect';
import { unpackValues } from './packed-values';
import { insertQuotes } from './queries/insert-quotes';
import type { ErrorFields, QuoteOrder, QuoteReport } from './quote-thread';

/** The other side of quote-thread.ts. It decides nothing: each order is one statement, and is reported once. */
const port = parentPort;
if (port === null) throw new Error('this file runs as a thread of the API');
const database = connectDatabase(workerData as DatabaseConfig);
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
const report = (message: QuoteReport) => port.postMessage(message);

port.on('message', (order: QuoteOrder) => {
  if (order === null) {
    // Without its port nothing keeps the thread alive.
    void database.close().finally(() => port.close());
    return;
  }
  const { id, values } = order;
  insertQuotes(database.sql, unpackValues(values)).then(
    () => report({ id }),
    (error: unknown) => report({ id, fault: fieldsOf(error) }),
  );
});
report(null);

/** What crosses to another thread of an error: its class and everything that is not plain stays behind. */
function fieldsOf(error: unknown): ErrorFields {
  if (!(error instanceof Error)) return { message: String(error) };
  const plain = Object.entries(error).filter(([, value]) => value === null || typeof value !== 'object');
  const { name, message, stack } = error;
  return { ...Object.fromEntries(plain), name, message, stack };
}
