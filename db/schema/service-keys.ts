import { sql } from 'drizzle-orm';
import { check, pgTable, text } from 'drizzle-orm/pg-core';
import { lenders } from './applications';
import { keyColumns } from './columns';

/** Keys of the internal listener; the key itself is never stored. */
export const serviceKeys = pgTable(
  'service_keys',
  {
    /** `svk_` and a ULID. */
    keyId: text('key_id').primaryKey(),
    name: text('name').notNull(),
    /** The lender whose applications it may open, move on and read. */
    lender: text('lender')
      .notNull()
      .references(() => lenders.lender),
    // Applications and quotes of the other environment do not exist for it.
    ...keyColumns(),
  },
  (t) => [
    check('service_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
    // Lenders of the test merchants, whose quotes every partner may have: no integration speaks for them.
    check('service_keys_no_test_lender', sql`${t.lender} not in ('test_lender_a', 'test_lender_b')`),
    check('service_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
  ],
);
