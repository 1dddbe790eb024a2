import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  date,
  index,
  integer,
  pgTable,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { DELIVERY_STATES } from '../../domain/notification-states';
import { moment, serviceNow } from './columns';

/**
 * The status that partners see of a notification under way (domain/notification-states.ts). An index has it: a query that is to use the
 * index contains the same text. @param d prefix of the columns, such as `d.`.
 */
export const deliveryStatus = (d = '') =>
  `case when ${d}state = 'held' then 'held' when ${d}step > 0 then 'retrying' else 'pending' end`;

/**
 * What is under way: one row for each notification that has not ended. Claims, order, slots, holds, pauses and reconciliation read this
 * table alone, so its size is the backlog's. What an event changes is decided by domain/notification-states.ts. No foreign key to
 * `notifications`: it would hold up the dropping of months, which ask this table what has to stay (ids_that_stay).
 */
export const deliveries = pgTable(
  'deliveries',
  {
    notificationId: text('notification_id').primaryKey(),
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    applicationId: text('application_id'),
    sequence: integer('sequence'),
    /** Of a test event. */
    test: boolean('test').notNull(),
    /** It was delivered before: now it is sent again. */
    delivered: boolean('delivered').notNull().default(false),
    /** 0: goes first; 1: bulk recovery, which waits behind every first attempt of its endpoint. */
    priority: smallint('priority').notNull().default(0),
    state: text('state', { enum: DELIVERY_STATES }).notNull().default('queued'),
    /** Part of the workflow's id: every beginning has the next one. */
    generation: integer('generation').notNull().default(1),
    /** Over all generations. */
    attempts: integer('attempts').notNull().default(0),
    /** Steps of the retry ladder that have been made: failed attempts that another one follows. */
    step: smallint('step').notNull().default(0),
    /** A dispatcher claims it from this moment on; a claim moves it by the lease. */
    dueAt: moment('due_at').notNull().default(serviceNow),
    /** When a dispatcher claimed it for its first attempt. Until that has ended it has one of its endpoint's slots; then it is null. */
    takenAt: moment('taken_at'),
    /** When its workflow was first seen. */
    startedAt: moment('started_at'),
    /** Later events of the application wait for it. */
    firstAttemptAt: moment('first_attempt_at'),
    /** When the next attempt is planned for, once one has failed. */
    nextAttemptAt: moment('next_attempt_at'),
    /** Since when an operator has it paused (`ops notifications pause`). */
    pausedAt: moment('paused_at'),
    /** Since when it is held, and why. */
    heldAt: moment('held_at'),
    holdReason: text('hold_reason'),
    /** When its workflow was last seen. */
    checkedAt: moment('checked_at'),
    /** First day of the UTC month in which a test has a unit of the quota reserved. */
    reservedMonth: date('reserved_month', { mode: 'string' }),
  },
  (t) => [
    // The claim: endpoint by endpoint (a partner has one for each environment), what is due first.
    index('deliveries_queue')
      .on(t.partnerId, t.environment, t.priority, t.dueAt)
      .where(sql`${t.state} = 'queued'`),
    // The same: how many slots of an endpoint are taken, and how many of its tests are under way.
    index('deliveries_slots')
      .on(t.partnerId, t.environment)
      .where(sql`${t.takenAt} is not null or ${t.test} and ${t.state} = 'started'`),
    // The same: whether an earlier event of the application is under way.
    index('deliveries_application')
      .on(t.applicationId, t.sequence)
      .where(sql`${t.applicationId} is not null`),
    // Partners' pages by status, and what is held in the order of its release.
    index('deliveries_page').on(
      t.partnerId,
      t.environment,
      sql`(${sql.raw(deliveryStatus())})`,
      t.notificationId,
    ),
    check('deliveries_state', sql`${t.state} in ('queued', 'started', 'held')`),
    check('deliveries_priority', sql`${t.priority} in (0, 1)`),
    check(
      'deliveries_held',
      sql`(${t.state} = 'held') = (${t.heldAt} is not null) and (${t.state} = 'held') = (${t.holdReason} is not null)`,
    ),
    check(
      'deliveries_open',
      sql`${t.state} <> 'held' or ${t.takenAt} is null and ${t.reservedMonth} is null
        and ${t.nextAttemptAt} is null and ${t.pausedAt} is null`,
    ),
    check('deliveries_sequence', sql`(${t.applicationId} is null) = (${t.sequence} is null)`),
  ],
);

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
