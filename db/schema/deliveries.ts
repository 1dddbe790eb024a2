import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  index,
  integer,
  pgPolicy,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { DELIVERY_STATES, ULID_PATTERN } from '../../domain/notification-states';
import { choice, day, moment, serviceNow } from './columns';
import { ofPartner } from './parties';

/**
 * What partners see of a delivery under way (notification-states.ts). An index has this text, so queries
 * must have it too.
 * @param d prefix, such as `d.`
 */
export const deliveryStatus = (d = '') =>
  `case when ${d}state = 'held' then 'held' when ${d}step > 0 then 'retrying' else 'pending' end`;

/**
 * How a notification begins: with 1 and nothing made, or, when it is sent again, where it stood at its end.
 * A count near the highest integer would fail at the next attempt, and of an id that is longer than ours
 * Temporal starts no workflow, however often it is asked.
 */
const MAY_BEGIN = `notification_id ~ '^ntf_${ULID_PATTERN}$' and partner_id ~ '^P[0-9]{6}$'
  and test = (application_id is null) and coalesce(octet_length(application_id), 0) <= 64
  and case when generation = 1 and attempts = 0 and not delivered then true
    else exists (select from notifications n where n.notification_id = deliveries.notification_id
      and n.generation + 1 = deliveries.generation and n.attempts = deliveries.attempts
      and (n.delivered_at is not null) = deliveries.delivered) end`;

/** Far above what a ladder or any number of resends reaches, and far below what the next one would exceed. */
const MOST = sql.raw('1000000000');

/**
 * One row for each notification that has not ended. Claims, order, slots, holds, pauses and
 * reconciliation read this table alone. domain/notification-states.ts decides what an event changes. A
 * foreign key to `notifications` would delay the dropping of months; the retention asks this table which
 * ids stay.
 */
export const deliveries = pgTable(
  'deliveries',
  {
    notificationId: text('notification_id').primaryKey(),
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    applicationId: text('application_id'),
    sequence: integer('sequence'),
    test: boolean('test').notNull(),
    /** Whether it was delivered before, and is sent again. */
    delivered: boolean('delivered').notNull().default(false),
    /** 0: live; 1: bulk recovery, after every live first attempt of its endpoint. */
    priority: smallint('priority').notNull().default(0),
    state: text('state', { enum: DELIVERY_STATES }).notNull().default('queued'),
    /** Part of the workflow's id, raised by a resend, a release and a restart: by one (a trigger), so that the next one fits. */
    generation: integer('generation').notNull().default(1),
    attempts: integer('attempts').notNull().default(0),
    /** Failed attempts of this generation that another one follows. */
    step: smallint('step').notNull().default(0),
    /** Wait before each attempt, in milliseconds. A worker stores it when the delivery begins (open.sql). */
    ladderMs: integer('ladder_ms').array(),
    /** When it may be claimed; a claim moves this by the lease. */
    dueAt: moment('due_at').notNull().default(serviceNow),
    /** When it was claimed for its first attempt; null once that has ended, and its slot is free. */
    takenAt: moment('taken_at'),
    startedAt: moment('started_at'),
    /** Later events of the application wait for it. */
    firstAttemptAt: moment('first_attempt_at'),
    nextAttemptAt: moment('next_attempt_at'),
    /** Why the next attempt is planned for then. */
    waitsFor: text('waits_for', { enum: ['ladder', 'retry_after', 'outage'] }),
    /** When an operator ordered one attempt at once (`ops notifications retry-now`); null once that was made. */
    hurriedAt: moment('hurried_at'),
    /** When an operator gave an order that its workflow has not read yet. */
    orderedAt: moment('ordered_at'),
    /** Since when an operator has paused it (`ops notifications pause`). */
    pausedAt: moment('paused_at'),
    pausedBy: text('paused_by'),
    heldAt: moment('held_at'),
    holdReason: text('hold_reason'),
    checkedAt: moment('checked_at'),
    /** First day of the UTC month in which a test has a unit of the quota reserved. */
    reservedMonth: day('reserved_month'),
  },
  (t) => [
    // The claim reads it queue by queue, in the order of the due times.
    index('deliveries_queue')
      .on(t.partnerId, t.environment, t.priority, t.dueAt)
      .where(sql`${t.state} = 'queued'`),
    // A sweep finds the queues with due rows; figures and alerts look for the oldest.
    index('deliveries_due')
      .on(t.dueAt)
      .where(sql`${t.state} = 'queued'`),
    // The reconciler looks for started ones that were not checked lately.
    index('deliveries_checked')
      .on(sql`coalesce(${t.checkedAt}, ${t.startedAt}, '-infinity')`)
      .where(sql`${t.state} = 'started'`),
    // It also looks for orders that a workflow has not read.
    index('deliveries_ordered')
      .on(t.orderedAt)
      .where(sql`${t.orderedAt} is not null`),
    // The keeper goes from queue to queue (held_queues).
    index('deliveries_held')
      .on(t.partnerId, t.environment)
      .where(sql`${t.state} = 'held'`),
    // The claim counts slots in use and tests under way.
    index('deliveries_slots')
      .on(t.partnerId, t.environment)
      .where(sql`${t.takenAt} is not null or ${t.test} and ${t.state} = 'started'`),
    // The claim looks for earlier events of the application.
    index('deliveries_application')
      .on(t.applicationId, t.sequence)
      .where(sql`${t.applicationId} is not null`),
    // Partners' pages by status, and held ones in the order of their release.
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
    check('deliveries_waits_for', sql`${t.waitsFor} in ('ladder', 'retry_after', 'outage')`),
    check('deliveries_sequence', sql`(${t.applicationId} is null) = (${t.sequence} is null)`),
    check('deliveries_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('deliveries_reason', sql`octet_length(${t.holdReason}) <= 200`),
    // What is due at no moment would stay, and no metric can reckon with it.
    check(
      'deliveries_moments',
      sql`isfinite(${t.dueAt}) and isfinite(${t.startedAt}) and isfinite(${t.firstAttemptAt}) and isfinite(${t.heldAt})
        and isfinite(${t.checkedAt})`,
    ),
    check(
      'deliveries_counts',
      sql`${t.generation} between 1 and ${MOST} and ${t.attempts} between 0 and ${MOST} and ${t.step} >= 0`,
    ),
    // Limits what the login of a process may insert.
    pgPolicy('deliveries_all', { using: sql`true` }),
    pgPolicy('deliveries_insert', { as: 'restrictive', for: 'insert', withCheck: sql.raw(MAY_BEGIN) }),
  ],
);

/** Spans in which no attempt to a partner begins (`ops partners pause-deliveries`), kept for reports. */
export const deliveryPauses = pgTable(
  'delivery_pauses',
  {
    partnerId: ofPartner(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    pausedAt: moment('paused_at').notNull().default(serviceNow),
    pausedBy: text('paused_by').notNull(),
    resumedAt: moment('resumed_at'),
    resumedBy: text('resumed_by'),
  },
  (t) => [
    primaryKey({ columns: [t.partnerId, t.environment, t.pausedAt] }),
    // The claim and every attempt ask for the present one.
    uniqueIndex('delivery_pauses_now')
      .on(t.partnerId, t.environment)
      .where(sql`${t.resumedAt} is null`),
    check('delivery_pauses_environment', sql`${t.environment} in ('sandbox', 'live')`),
    check('delivery_pauses_resumed', sql`(${t.resumedAt} is null) = (${t.resumedBy} is null)`),
  ],
);

/**
 * Past spans in which a delivery was held or paused. A trigger of `deliveries` writes them
 * (keep_interval). They are removed with the attempts of their month.
 */
export const deliveryIntervals = pgTable(
  'delivery_intervals',
  {
    notificationId: text('notification_id').notNull(),
    kind: text('kind', { enum: ['held', 'paused'] }).notNull(),
    /** Why it was held, or who paused it. */
    reason: text('reason'),
    beganAt: moment('began_at').notNull(),
    endedAt: moment('ended_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.notificationId, t.kind, t.beganAt] }),
    check('delivery_intervals_kind', sql`${t.kind} in ('held', 'paused')`),
  ],
);

/** Bulk recoveries, written with every resend, so that an interrupted one sends no event twice. */
export const recoveries = pgTable(
  'recoveries',
  {
    recoveryId: text('recovery_id').primaryKey(),
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }),
    /** The API key of its partner's call; null: an operator began it. */
    keyId: text('key_id'),
    /** Notifications created from `since` (inclusive) to `until` (exclusive). */
    since: moment('since').notNull(),
    until: moment('until').notNull(),
    state: choice('state', ['running', 'interrupted', 'done']).default('running'),
    perSecond: integer('per_second').notNull(),
    found: integer('found').notNull(),
    sent: integer('sent').notNull().default(0),
    /** Skipped ones had ended otherwise or were under way by then. */
    skipped: integer('skipped').notNull().default(0),
    /** The last notification that was handled, in the order of work. Empty before the first. */
    lastApplication: text('last_application').notNull().default(''),
    lastSequence: integer('last_sequence').notNull().default(0),
    lastNotification: text('last_notification').notNull().default(''),
    /** The process that works on it. A process that resumes it replaces this, and the first one stops. */
    runner: text('runner').notNull(),
    createdAt: moment('created_at').notNull().default(serviceNow),
    updatedAt: moment('updated_at').notNull().default(serviceNow),
    endedAt: moment('ended_at'),
  },
  (t) => [
    // `ops notifications recoveries --partner`.
    index('recoveries_partner').on(t.partnerId, t.recoveryId),
    // A partner has one of its own at a time in each environment. Workers find them here.
    uniqueIndex('recoveries_under_way')
      .on(t.partnerId, t.environment)
      .where(sql`${t.state} = 'running' and ${t.keyId} is not null`),
    check('recoveries_state', sql`${t.state} in ('running', 'interrupted', 'done')`),
    check('recoveries_environment', sql`${t.environment} in ('sandbox', 'live')`),
    // The index above counts no recovery without an environment, of which a partner would have any number.
    check('recoveries_of_partner', sql`${t.keyId} is null or ${t.environment} is not null`),
    // A worker carries out eight at a time; one at a rate of 0 would never end.
    check(
      'recoveries_counts',
      sql`${t.perSecond} between 1 and 1000 and ${t.found} >= 0 and ${t.sent} between 0 and ${MOST}
        and ${t.skipped} between 0 and ${MOST}`,
    ),
  ],
);
