import { sql } from 'drizzle-orm';
import { check, pgTable, text } from 'drizzle-orm/pg-core';
import { lenders } from './applications';
import { bytea, moment, serviceNow } from './columns';

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
    /** Applications and quotes of the other one do not exist for it. */
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    /** SHA-256 of the whole key. */
    keyHash: bytea('key_hash').notNull().unique(),
    lastFour: text('last_four').notNull(),
    state: text('state', { enum: ['active', 'inactive', 'revoked'] })
      .notNull()
      .default('active'),
    /** From this moment on it answers 401; null: never. Rotation sets it on the old key. */
    expiresAt: moment('expires_at'),
    createdAt: moment('created_at').notNull().default(serviceNow),
    revokedAt: moment('revoked_at'),
    replacedBy: text('replaced_by'),
  },
  (t) => [
    check('service_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
    check('service_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
  ],
);
