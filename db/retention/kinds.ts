import { sql } from 'drizzle-orm';
import { LEAST_RETENTION_DAYS, type RetentionKind } from '../../domain/retention';

/** A kind whose rows go, by whole months where that is possible. What must stay is decided by ids_that_stay() in the database. */
export interface MonthlyKind {
  /** Partitioned by month. */
  readonly table: 'delivery_attempts' | 'notifications' | 'quotes';
  readonly idColumn: 'notification_id' | 'quote_id';
  readonly prefix: 'ntf_' | 'qte_';
}

export const MONTHLY_KINDS: Readonly<Record<Exclude<RetentionKind, 'payloads'>, MonthlyKind>> = {
  attempts: { table: 'delivery_attempts', idColumn: 'notification_id', prefix: 'ntf_' },
  notifications: { table: 'notifications', idColumn: 'notification_id', prefix: 'ntf_' },
  quotes: { table: 'quotes', idColumn: 'quote_id', prefix: 'qte_' },
};

/** The moment before which nothing is kept, by the database's clock: never less than 31 days ago, whatever `days` says. */
export const endOfTime = (days: number) =>
  sql`service_now() - make_interval(days => greatest(${days}::int, ${sql.raw(String(LEAST_RETENTION_DAYS))}))`;

/** The smallest id of what is to be kept. */
export const floorOf = (prefix: string, days: number) =>
  sql`(${prefix}::text || ulid_floor(${endOfTime(days)}))`;
