import { and, desc, eq, lt, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { changeLog } from '../schema';
import { given, within, type Within } from '../schema/columns';

type RecordedChange = Readonly<typeof changeLog.$inferSelect>;
/** A change to be written. Its details never contain a key or a secret. */
export type Change = Pick<RecordedChange, 'actor' | 'action' | 'subject' | 'details'>;

/** Writes changes, in the transaction that makes them. */
export async function appendChanges(tx: DbOrTransaction, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.execute(sql`
    insert into change_log (actor, action, subject, details)
    select actor, action, subject, details
    from jsonb_to_recordset(${JSON.stringify(changes)}::text::jsonb)
      as c (actor text, action text, subject text, details jsonb)`);
}

export async function appendChange(tx: DbOrTransaction, change: Change): Promise<void> {
  await appendChanges(tx, [change]);
}

export async function listChanges(
  db: DbOrTransaction,
  filter: Partial<Within & Record<'subject' | 'actor' | 'action', string>> & {
    /** Changes of this partner and of its keys, endpoints, secrets, notifications and recoveries. */
    partnerId?: string;
    after?: number;
    limit: number;
  },
): Promise<RecordedChange[]> {
  const { changeId, changedAt, actor, action, subject, details } = changeLog;
  const { partnerId } = filter;
  const ofPartner =
    partnerId === undefined
      ? undefined
      : sql`(${subject} = ${partnerId} or ${details} ->> 'partner_id' = ${partnerId})`;
  return db
    .select()
    .from(changeLog)
    .where(
      and(
        given(subject, filter.subject),
        given(actor, filter.actor),
        given(action, filter.action),
        ofPartner,
        within(changedAt, filter),
        given(changeId, filter.after, lt),
      ),
    )
    .orderBy(desc(changeId))
    .limit(filter.limit);
}

/** Any login may write lines of any form; only a number is added up. */
export async function lastRemovals(db: DbOrTransaction, limit: number) {
  const rows = await db.execute<{ changed_at: string; login: string; subject: string; rows: number }>(sql`
    select to_char(max(changed_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as changed_at, login, subject,
      sum((details ->> 'rows')::float8) as rows
    from (
      select * from change_log where action in ('retention.drop', 'retention.remove') and jsonb_typeof(details -> 'rows') = 'number'
      order by change_id desc limit 10000) l
    group by login, subject, date_trunc('hour', changed_at) order by max(change_id) desc limit ${limit}`);
  return [...rows];
}

export async function findChange(db: DbOrTransaction, changeId: number): Promise<RecordedChange | null> {
  const [row] = await db.select().from(changeLog).where(eq(changeLog.changeId, changeId));
  return row ?? null;
}
