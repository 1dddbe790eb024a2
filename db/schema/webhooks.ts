import { check, index, integer, pgTable, smallint, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { bytea, choice, moment, serviceNow } from './columns';
import { ofPartner } from './parties';

export const webhookEndpoints = pgTable(
  'webhook_endpoints',
  {
    endpointId: text('endpoint_id').primaryKey(),
    partnerId: ofPartner(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    url: text('url').notNull(),
    /** `disabled`: nothing is sent until it is enabled; `removed`: it was replaced or withdrawn. */
    state: choice('state', ['active', 'disabled', 'removed']).default('active'),
    disabledReason: text('disabled_reason', { enum: ['operator', 'gone', 'failing'] }),
    /** The last 2xx, or one at most a minute before it, as not every delivery writes to this row. */
    lastSuccessAt: moment('last_success_at'),
    /** The first failure since the last 2xx, or since it was enabled; null without one. */
    failingSince: moment('failing_since'),
    failuresSinceSuccess: integer('failures_since_success').notNull().default(0),
    /** Hours of failing that operators have been warned of: 0, 24, 48 or 96. */
    warnedHours: smallint('warned_hours').notNull().default(0),
    /** When it last sent bytes that belong to no request. For a day from then on no connection to it is used again. */
    surplusAt: moment('surplus_at'),
    createdAt: moment('created_at').notNull().default(serviceNow),
    updatedAt: moment('updated_at').notNull().default(serviceNow),
  },
  // No index has a health column, so that updates of those stay on the page (HOT).
  (t) => [
    // The one endpoint of an environment, for every send and every test.
    uniqueIndex('webhook_endpoints_current')
      .on(t.partnerId, t.environment)
      .where(sql`${t.state} <> 'removed'`),
    check('webhook_endpoints_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('webhook_endpoints_state', sql`${t.state} in ('active', 'disabled', 'removed')`),
  ],
);

/** Signing secrets, sealed (key-ring.ts). The newest has no end; older ones sign until their overlap ends. */
export const webhookSecrets = pgTable(
  'webhook_secrets',
  {
    secretId: text('secret_id').primaryKey(),
    endpointId: text('endpoint_id')
      .notNull()
      .references(() => webhookEndpoints.endpointId),
    keyId: text('key_id').notNull(),
    ciphertext: bytea('ciphertext').notNull(),
    createdAt: moment('created_at').notNull().default(serviceNow),
    /** From this moment on it no longer signs; null: no end. Rotation sets it. */
    expiresAt: moment('expires_at'),
  },
  (t) => [index('webhook_secrets_endpoint').on(t.endpointId)],
);

/** Ed25519 key pairs of a tenant: with a shared one, a partner could send its events to another. */
export const webhookKeyPairs = pgTable(
  'webhook_key_pairs',
  {
    keyPairId: text('key_pair_id').primaryKey(),
    partnerId: ofPartner(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    publicKey: text('public_key').notNull(),
    keyId: text('key_id').notNull(),
    ciphertext: bytea('ciphertext').notNull(),
    createdAt: moment('created_at').notNull().default(serviceNow),
    /** From this moment on it no longer signs and is listed no more; null: no end. Rotation sets it. */
    expiresAt: moment('expires_at'),
  },
  (t) => [
    index('webhook_key_pairs_partner').on(t.partnerId, t.environment),
    uniqueIndex('webhook_key_pairs_current')
      .on(t.partnerId, t.environment)
      .where(sql`${t.expiresAt} is null`),
    check('webhook_key_pairs_environment', sql`${t.environment} in ('sandbox', 'live')`),
  ],
);
