import { appendChange, type Change } from '../db/audit/change-log';
import type { DbOrTransaction } from '../db/postgres/connect';
import type { Call } from './call';

/** Writes the change to the log, by the id of what was changed; not called when nothing was. */
export type Log = (subject: Change['subject'], details: Change['details']) => Promise<void>;

/**
 * Makes a change and writes it to the change log in one transaction.
 * @param action `<noun>.<verb>`, for the log.
 */
export async function changeAndLog<Done>(
  { db, deps }: Call,
  action: string,
  change: (tx: DbOrTransaction, log: Log) => Promise<Done>,
): Promise<Done> {
  const { actor } = deps;
  return db.transaction((tx) =>
    change(tx, (subject, details) => appendChange(tx, { actor, action, subject, details })),
  );
}
