import { boolean, check, pgTable } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { bytea } from './columns';

/** The secret that authenticates the cursors of pages, one row that the first migration draws: every API process has the same. */
export const cursorSecrets = pgTable(
  'cursor_secrets',
  {
    /** There is one. */
    only: boolean('only').primaryKey().default(true),
    secret: bytea('secret').notNull(),
  },
  (t) => [check('cursor_secrets_only', sql`${t.only}`)],
);
