import { and, desc } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { changeLog } from '../schema';
import { given } from '../schema/columns';

export type RecordedChange = Readonly<typeof changeLog.$inferSelect>;
/** One change, as it is written down. */
export type Change = Omit<RecordedChange, 'changeId' | 'changedAt'>;

/** Postgres takes at most 65,534 parameters in a statement; four to a row. */
const ROWS_PER_STATEMENT = 1_000;

/** Writes down changes. Call it in the transaction that makes them. */
export async function appendChanges(tx: DbOrTransaction, changes: readonly Change[]): Promise<void> {
  for (let from = 0; from < changes.length; from += ROWS_PER_STATEMENT) {
    await tx.insert(changeLog).values(changes.slice(from, from + ROWS_PER_STATEMENT));
  }
}

/** Writes down one change. Call it in the transaction that makes it. */
export async function appendChange(tx: DbOrTransaction, change: Change): Promise<void> {
  await appendChanges(tx, [change]);
}

/** Changes, newest first. */
export async function listChanges(
  db: DbOrTransaction,
  filter: {
    subject?: string | undefined;
    actor?: string | undefined;
    action?: string | undefined;
    limit: number;
  },
): Promise<RecordedChange[]> {
  const { subject, actor, action } = changeLog;
  return db
    .select()
    .from(changeLog)
    .where(and(given(subject, filter.subject), given(actor, filter.actor), given(action, filter.action)))
    .orderBy(desc(changeLog.changeId))
    .limit(filter.limit);
}
