import { sql } from 'drizzle-orm';
import { check, index, pgTable, text } from 'drizzle-orm/pg-core';
import { choice, keyColumns, moment, serviceNow } from './columns';

export const partners = pgTable(
  'partners',
  {
    partnerId: text('partner_id').primaryKey(),
    name: text('name').notNull(),
    /** An inactive partner's keys answer 401. */
    state: choice('state', ['active', 'inactive']).default('active'),
    /** Whether it may begin recoveries itself (`POST /v1/notifications/recover`). */
    recovery: choice('recovery', ['enabled', 'disabled']).default('enabled'),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  (t) => [
    check('partners_id_form', sql`${t.partnerId} ~ '^P[0-9]{6}$'`),
    check('partners_state', sql`${t.state} in ('active', 'inactive')`),
    check('partners_recovery', sql`${t.recovery} in ('enabled', 'disabled')`),
  ],
);

export const ofPartner = () =>
  text('partner_id')
    .notNull()
    .references(() => partners.partnerId);

export const lenders = pgTable('lenders', {
  lender: text('lender').primaryKey(),
  /** The name that shoppers see. Each product version stores the name of its time. */
  name: text('name').notNull(),
  referenceFormat: text('reference_format').notNull(),
  createdAt: moment('created_at').notNull().default(serviceNow),
});

export const ofLender = () =>
  text('lender')
    .notNull()
    .references(() => lenders.lender);

/** API keys; the key itself is never stored. */
export const apiKeys = pgTable(
  'api_keys',
  {
    keyId: text('key_id').primaryKey(),
    partnerId: ofPartner(),
    ...keyColumns(),
  },
  (t) => [
    // `ops keys list --partner`, and a change of a partner that concerns its keys.
    index('api_keys_partner').on(t.partnerId),
    check('api_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('api_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
  ],
);

export const serviceKeys = pgTable(
  'service_keys',
  {
    keyId: text('key_id').primaryKey(),
    name: text('name').notNull(),
    /** The lender whose applications it may open, change and read. */
    lender: ofLender(),
    // Applications and quotes of the other environment do not exist for it.
    ...keyColumns(),
  },
  (t) => [
    check('service_keys_state', sql`${t.state} in ('active', 'inactive', 'revoked')`),
    // Test merchants work for every partner, and their lenders have no integration.
    check('service_keys_no_test_lender', sql`${t.lender} not in ('test_lender_a', 'test_lender_b')`),
    check('service_keys_environment', sql`${t.environment} in ('sandbox', 'live')`),
  ],
);

/** When a key was last accepted, to the hour; apart, because changes of keys are announced. */
export const keyUses = pgTable('key_uses', {
  keyId: text('key_id').primaryKey(),
  usedAt: moment('used_at').notNull(),
});
