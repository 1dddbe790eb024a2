import { sql, type SQL } from 'drizzle-orm';
import { LEAST_RETENTION_DAYS, type RetentionKind } from '../../domain/retention';

/** A kind whose rows go, by whole months where that is possible. */
export interface MonthlyKind {
  /** Partitioned by month. */
  readonly table: 'delivery_attempts' | 'notifications' | 'quotes';
  readonly idColumn: 'notification_id' | 'quote_id';
  readonly prefix: 'ntf_' | 'qte_';
  /** Locked with the month while it is dropped, so that nothing in it becomes one that must stay. */
  readonly alsoLocks: 'notifications' | null;
  /** Whether a row must stay however old it is; `t` is the table. */
  readonly stays: SQL;
  /** Whether there is such a row in a range of ids: answered by an index, as writers of that month wait meanwhile. */
  readonly anyStays: (low: string, high: string) => SQL;
}

/** What is under way, or waits for an endpoint, is owed to a partner. */
const NOT_ENDED = sql`('pending', 'started', 'held')`;
/** An application in any other state may still become something; its quote is what it was opened from. */
const SETTLED = sql`('declined', 'cancelled', 'expired', 'completed', 'partially_refunded', 'refunded')`;

/** State by state: each has a partial index. */
const anyNotEnded = (low: string, high: string) => {
  const inState = (state: string) => sql`exists (select 1 from notifications
    where state = ${sql.raw(`'${state}'`)} and notification_id >= ${low} and notification_id < ${high})`;
  return sql`${inState('pending')} or ${inState('started')} or ${inState('held')}`;
};

export const MONTHLY_KINDS: Readonly<Record<Exclude<RetentionKind, 'payloads'>, MonthlyKind>> = {
  attempts: {
    table: 'delivery_attempts',
    idColumn: 'notification_id',
    prefix: 'ntf_',
    alsoLocks: 'notifications',
    stays: sql`exists (select 1 from notifications n
      where n.notification_id = t.notification_id and n.state in ${NOT_ENDED})`,
    anyStays: anyNotEnded,
  },
  notifications: {
    table: 'notifications',
    idColumn: 'notification_id',
    prefix: 'ntf_',
    alsoLocks: null,
    stays: sql`t.state in ${NOT_ENDED}`,
    anyStays: anyNotEnded,
  },
  quotes: {
    table: 'quotes',
    idColumn: 'quote_id',
    prefix: 'qte_',
    alsoLocks: null,
    stays: sql`exists (select 1 from credit_applications a
      where a.quote_id = t.quote_id and a.state not in ${SETTLED})`,
    anyStays: (low, high) => sql`exists (select 1 from credit_applications
      where quote_id >= ${low} and quote_id < ${high} and state not in ${SETTLED})`,
  },
};

/** The moment before which nothing is kept, by the database's clock: never less than 31 days ago, whatever `days` says. */
export const endOfTime = (days: number) =>
  sql`service_now() - make_interval(days => greatest(${days}::int, ${sql.raw(String(LEAST_RETENTION_DAYS))}))`;

/** The smallest id of what is to be kept. */
export const floorOf = (prefix: string, days: number) =>
  sql`(${prefix}::text || ulid_floor(${endOfTime(days)}))`;
