import { check, index, pgTable, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { bytea, moment, serviceNow } from './columns';
import { partners } from './partners';

/** API keys; the key itself is never stored. */
export const apiKeys = pgTable(
  'api_keys',
  {
    /** `key_` and a ULID: names the key in logs and limits without revealing it. */
    keyId: text('key_id').primaryKey(),
    partnerId: text('partner_id')
      .notNull()
      .references(() => partners.partnerId),
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
    // `ops keys list --partner`, and a partner's change reaching its keys.
    index('api_keys_partner').on(t.partnerId),
    check('api_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('api_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
  ],
);
