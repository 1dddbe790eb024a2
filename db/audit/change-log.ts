import { and, desc, eq, lt, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { changeLog } from '../schema';
import { given, givenSince } from '../schema/columns';

/** A change as it is stored (db/schema/change-log.ts). */
type RecordedChange = Readonly<typeof changeLog.$inferSelect>;
/** One change, as it is written down; its details never name a key or a secret. */
export type Change = Pick<RecordedChange, 'actor' | 'action' | 'subject' | 'details'>;

/** Writes down changes. Call it in the transaction that makes them. */
export async function appendChanges(tx: DbOrTransaction, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.execute(sql`
    insert into change_log (actor, action, subject, details)
    select actor, action, subject, details
    from jsonb_to_recordset(${JSON.stringify(changes)}::text::jsonb)
      as c (actor text, action text, subject text, details jsonb)`);
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
    /** What was changed of this partner: itself, and its keys, endpoints, secrets, notifications and recoveries. */
    partnerId?: string | undefined;
    /** How far back, in seconds. */
    sinceSeconds?: number | undefined;
    /** Only those older than this one: the next page. */
    after?: number | undefined;
    limit: number;
  },
): Promise<RecordedChange[]> {
  const { changeId, changedAt, actor, action, subject, details } = changeLog;
  const { partnerId } = filter;
  // As the index change_log_partner has it.
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
        givenSince(changedAt, filter.sinceSeconds),
        given(changeId, filter.after, lt),
      ),
    )
    .orderBy(desc(changeId))
    .limit(filter.limit);
}

/** One change; null when there is none. */
export async function findChange(db: DbOrTransaction, changeId: number): Promise<RecordedChange | null> {
  const [row] = await db.select().from(changeLog).where(eq(changeLog.changeId, changeId));
  return row ?? null;
}
