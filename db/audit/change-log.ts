import { and, desc, eq, gte, lt, sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { changeLog } from '../schema';

/** One change, as it is written down. */
export interface Change {
  /** Operating-system user that ran the command, or the process that acted. */
  readonly actor: string;
  /** `<noun>.<verb>`, for example `keys.revoke`. */
  readonly action: string;
  /** Id of what was changed. */
  readonly subject: string;
  /** What changed; never a key or a secret. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface RecordedChange extends Change {
  readonly changeId: number;
  readonly changedAt: Date;
}

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
    /** What was changed of this partner: itself, and its keys, endpoints, secrets, notifications and recoveries. */
    partnerId?: string | undefined;
    /** How far back, in seconds. */
    sinceSeconds?: number | undefined;
    /** Only those older than this one: the next page. */
    after?: number | undefined;
    limit: number;
  },
): Promise<RecordedChange[]> {
  const conditions: SQL[] = [];
  if (filter.subject !== undefined) conditions.push(eq(changeLog.subject, filter.subject));
  if (filter.actor !== undefined) conditions.push(eq(changeLog.actor, filter.actor));
  if (filter.action !== undefined) conditions.push(eq(changeLog.action, filter.action));
  const { partnerId, sinceSeconds, after } = filter;
  // As the index change_log_partner has it.
  if (partnerId !== undefined) {
    const named = sql`${changeLog.details} ->> 'partner_id' = ${partnerId}`;
    conditions.push(sql`(${changeLog.subject} = ${partnerId} or ${named})`);
  }
  if (sinceSeconds !== undefined) {
    const oldest = sql`service_now() - make_interval(secs => ${sinceSeconds}::float8)`;
    conditions.push(gte(changeLog.changedAt, oldest));
  }
  if (after !== undefined) conditions.push(lt(changeLog.changeId, after));
  return db
    .select()
    .from(changeLog)
    .where(and(...conditions))
    .orderBy(desc(changeLog.changeId))
    .limit(filter.limit);
}

/** One change; null when there is none. */
export async function findChange(db: DbOrTransaction, changeId: number): Promise<RecordedChange | null> {
  const [row] = await db.select().from(changeLog).where(eq(changeLog.changeId, changeId));
  return row ?? null;
}
