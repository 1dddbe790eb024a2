import { sql } from 'drizzle-orm';
import { check, index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { moment, serviceNow } from './columns';

/**
 * Bulk recoveries: everything that a partner did not get in a span, sent again. The row is what lets an interrupted one
 * go on: it is written in the transaction of every resend, so that no event is sent twice by the same recovery.
 */
export const recoveries = pgTable(
  'recoveries',
  {
    /** `rcv_` and a ULID. */
    recoveryId: text('recovery_id').primaryKey(),
    partnerId: text('partner_id').notNull(),
    /** One environment only; null: both. */
    environment: text('environment', { enum: ['sandbox', 'live'] }),
    /** The API key under which its partner asked for it; null: an operator began it. */
    keyId: text('key_id'),
    /** Notifications created from `since` (inclusive) to `until` (exclusive). */
    since: moment('since').notNull(),
    until: moment('until').notNull(),
    state: text('state', { enum: ['running', 'interrupted', 'done'] })
      .notNull()
      .default('running'),
    perSecond: integer('per_second').notNull(),
    /** Due to be sent when it began. */
    found: integer('found').notNull(),
    sent: integer('sent').notNull().default(0),
    /** Passed over, because they had ended otherwise or were under way when their turn came. */
    skipped: integer('skipped').notNull().default(0),
    /** The last one dealt with, in the order of work: application, sequence, notification. Empty before the first. */
    lastApplication: text('last_application').notNull().default(''),
    lastSequence: integer('last_sequence').notNull().default(0),
    lastNotification: text('last_notification').notNull().default(''),
    /** The process that works on it; another one that resumes it takes this over, and the first stops. */
    runner: text('runner').notNull(),
    createdAt: moment('created_at').notNull().default(serviceNow),
    updatedAt: moment('updated_at').notNull().default(serviceNow),
    endedAt: moment('ended_at'),
  },
  (t) => [
    // `ops notifications recoveries --partner`.
    index('recoveries_partner').on(t.partnerId, t.recoveryId),
    // One of a partner's own at a time, for each environment; and what a worker has to go on with.
    uniqueIndex('recoveries_under_way')
      .on(t.partnerId, t.environment)
      .where(sql`${t.state} = 'running' and ${t.keyId} is not null`),
    check('recoveries_state', sql`${t.state} in ('running', 'interrupted', 'done')`),
  ],
);
