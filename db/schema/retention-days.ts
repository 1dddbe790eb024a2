import { sql } from 'drizzle-orm';
import { check, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { LEAST_RETENTION_DAYS, RETENTION_KINDS } from '../../domain/retention';

/** How many days each kind is kept. Only `migrate` writes here, with the login that owns the schema (db/retention/days.ts). */
export const retentionDays = pgTable(
  'retention_days',
  {
    kind: text('kind', { enum: RETENTION_KINDS }).primaryKey(),
    days: integer('days').notNull(),
  },
  (t) => [
    check('retention_days_least', sql`${t.days} between ${sql.raw(String(LEAST_RETENTION_DAYS))} and 36500`),
  ],
);
