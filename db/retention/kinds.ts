import { sql } from 'drizzle-orm';
import type { RetentionKind } from '../../domain/retention';

/** A kind whose rows go, by whole months where that is possible. What must stay is decided by ids_that_stay() in the database. */
export interface MonthlyKind {
  readonly kind: Exclude<RetentionKind, 'payloads'>;
  /** Partitioned by month. */
  readonly table: 'delivery_attempts' | 'notifications' | 'quotes';
  readonly idColumn: 'notification_id' | 'quote_id';
  readonly prefix: 'ntf_' | 'qte_';
}

export const MONTHLY_KINDS: Readonly<Record<Exclude<RetentionKind, 'payloads'>, MonthlyKind>> = {
  attempts: { kind: 'attempts', table: 'delivery_attempts', idColumn: 'notification_id', prefix: 'ntf_' },
  notifications: {
    kind: 'notifications',
    table: 'notifications',
    idColumn: 'notification_id',
    prefix: 'ntf_',
  },
  quotes: { kind: 'quotes', table: 'quotes', idColumn: 'quote_id', prefix: 'qte_' },
};

/** The smallest id of what is to be kept: the database knows of how many days. */
export const floorOf = (kind: RetentionKind) => sql`retention_floor(${kind})`;
