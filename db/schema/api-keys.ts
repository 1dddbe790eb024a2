import { check, index, pgTable, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { keyColumns } from './columns';
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
    ...keyColumns(),
  },
  (t) => [
    // `ops keys list --partner`, and a partner's change reaching its keys.
    index('api_keys_partner').on(t.partnerId),
    check('api_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('api_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
  ],
);
