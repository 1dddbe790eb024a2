import { sql } from 'drizzle-orm';
import {
  check,
  date,
  index,
  integer,
  pgPolicy,
  pgTable,
  primaryKey,
  smallint,
  text,
} from 'drizzle-orm/pg-core';
import { APPLICATION_STATES } from '../../domain/application-states';
import { END_STATES, NOTIFICATION_STATES } from '../../domain/notification-states';
import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { ULID_PATTERN } from '../../domain/ulid-pattern';
import { moment, serviceNow } from './columns';

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(', ');

/**
 * What partners see as the status, as domain/notification-status.ts says it. Unqualified: it is in an index, which each partition
 * gets by the names of its columns. A query finds that index by the same text.
 */
export const STATUS_SQL = `case when state in ('pending', 'started')
  then case when first_attempt_at is not null and taken_at is null then 'retrying' else 'pending' end
  when state <> 'held' and delivered_at is not null then 'delivered' else state end`;

/** A test is for a partner; every other event belongs to its application, and says what has become of that now. */
const MAY_INSERT = `notification_id ~ '^ntf_${ULID_PATTERN}$' and event_id ~ '^evt_${ULID_PATTERN}$'
  and environment in ('sandbox', 'live') and octet_length(body) <= 20000
  and case when application_id is null then event_type = '${TEST_EVENT_TYPE}' and partner_id ~ '^P[0-9]{6}$'
    else event_type in (${quoted(APPLICATION_STATES.map((state) => `credit_application.${state}`))})
      and exists (select from credit_applications a where a.application_id = notifications.application_id
        and a.partner_id = notifications.partner_id and a.environment = notifications.environment
        and a.sequence = notifications.sequence and 'credit_application.' || a.state = notifications.event_type
        and a.merchant_reference is not distinct from notifications.merchant_reference) end`;

/**
 * Notifications: what is owed to a partner, and what became of it. Written in the transaction of the change that caused
 * them; the dispatcher makes each a workflow. Partitioned by month through the id, as quotes are.
 */
export const notifications = pgTable(
  'notifications',
  {
    /** `ntf_` and a ULID. */
    notificationId: text('notification_id').primaryKey(),
    /** `evt_` and a ULID: what the partner sees, the same at every attempt. */
    eventId: text('event_id').notNull(),
    eventType: text('event_type').notNull(),
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    /** The credit application it tells of, and its place among the events of that one; null for a test. */
    applicationId: text('application_id'),
    sequence: integer('sequence'),
    /** The partner's own reference, of the application's quote. */
    merchantReference: text('merchant_reference'),
    /** The body that is sent and signed, byte for byte. */
    body: text('body').notNull(),
    state: text('state', { enum: NOTIFICATION_STATES }).notNull().default('pending'),
    /** 0: goes first; 1: bulk recovery, which waits behind every first attempt of its endpoint. */
    priority: smallint('priority').notNull().default(0),
    endReason: text('end_reason'),
    /** Part of the workflow's id: a resend or a release from hold is a new one. */
    generation: integer('generation').notNull().default(1),
    attempts: integer('attempts').notNull().default(0),
    /** First day of the UTC month whose limit a test notification holds a place in, until it has ended. */
    reservedMonth: date('reserved_month', { mode: 'string' }),
    /** First day of the UTC month that counted it as failed; a later delivery takes that back. */
    failedMonth: date('failed_month', { mode: 'string' }),
    createdAt: moment('created_at').notNull().default(serviceNow),
    /** The dispatcher takes it from this moment on; taking it moves this on by the lease. */
    dueAt: moment('due_at').notNull().default(serviceNow),
    /**
     * When a dispatcher took it for its first attempt. Until that has ended it holds one of its endpoint's places; then, and
     * under a new generation, it is null again.
     */
    takenAt: moment('taken_at'),
    /** When its workflow was first seen. */
    startedAt: moment('started_at'),
    /** Start of this generation's first attempt; later events of the application wait for it. */
    firstAttemptAt: moment('first_attempt_at'),
    /** When its workflow was last seen; of a pending one, when it could not be started last. */
    checkedAt: moment('checked_at'),
    /** When the next attempt is planned for, once one has failed. */
    nextAttemptAt: moment('next_attempt_at'),
    /** Since when an operator has it paused (`ops notifications pause`). */
    pausedAt: moment('paused_at'),
    /** The first 2xx. Set once, and counted with it. */
    deliveredAt: moment('delivered_at'),
    endedAt: moment('ended_at'),
    /** Since when it is held, while it is. */
    heldAt: moment('held_at'),
    /** The recovery that sent it again last. */
    recoveryId: text('recovery_id'),
    requestId: text('request_id'),
    /** Of the request that caused it, where traces are on: `traceparent` of W3C; what is done for it joins that trace. */
    traceParent: text('trace_parent'),
  },
  (t) => [
    // The dispatcher's claim: endpoint by endpoint (a partner has one per environment), what is due first.
    index('notifications_queue')
      .on(t.partnerId, t.environment, t.priority, t.dueAt)
      .where(sql`${t.state} = 'pending'`),
    // The same: how many places of an endpoint are held.
    index('notifications_taken')
      .on(t.partnerId, t.environment)
      .where(sql`${t.takenAt} is not null and ${t.state} in ('pending', 'started')`),
    // The same: how many tests of an endpoint are under way or being tried again.
    index('notifications_tests')
      .on(t.partnerId, t.environment)
      .where(sql`${t.eventType} = 'credit_application.test' and ${t.state} = 'started'`),
    // The same: whether an earlier event of the application is still open; and an application's notifications in order.
    index('notifications_application')
      .on(t.applicationId, t.sequence)
      .where(sql`${t.applicationId} is not null`),
    // The sweep's reconciliation with Temporal, and `ops notifications list --undelivered`.
    index('notifications_started')
      .on(t.checkedAt)
      .where(sql`${t.state} = 'started'`),
    // What is held for a partner and environment, in the order of its release.
    index('notifications_held')
      .on(t.partnerId, t.environment, t.notificationId)
      .where(sql`${t.state} = 'held'`),
    index('notifications_held_since')
      .on(t.heldAt)
      .where(sql`${t.state} = 'held'`),
    // `GET /v1/notifications`: pages of a partner and environment, newest first, and the same by each of its filters
    // (db/notifications/list-for-partner.ts). `ops notifications list --partner` goes by the first. The environment comes first, because
    // an index that begins with partner and environment is one that the claim could walk instead of its own.
    index('notifications_page').on(t.environment, t.partnerId, t.notificationId),
    index('notifications_page_status').on(
      t.environment,
      t.partnerId,
      sql`(${sql.raw(STATUS_SQL)})`,
      t.notificationId,
    ),
    index('notifications_page_event_type').on(t.environment, t.partnerId, t.eventType, t.notificationId),
    index('notifications_page_event').on(t.environment, t.partnerId, t.eventId, t.notificationId),
    index('notifications_page_application')
      .on(t.environment, t.partnerId, t.applicationId, t.notificationId)
      .where(sql`${t.applicationId} is not null`),
    index('notifications_page_reference')
      .on(t.environment, t.partnerId, t.merchantReference, t.notificationId)
      .where(sql`${t.merchantReference} is not null`),
    // What has come of a recovery.
    index('notifications_recovery')
      .on(t.recoveryId)
      .where(sql`${t.recoveryId} is not null`),
    // Unqualified: it is added to partitions that are there already, by name.
    check('notifications_priority', sql`priority in (0, 1)`),
    check('notifications_state', sql`state in (${sql.raw(quoted(NOTIFICATION_STATES))})`),
    // What domain/notification-states.ts sets and clears together.
    check('notifications_held', sql`(state = 'held') = (held_at is not null)`),
    check('notifications_ended', sql`(state in (${sql.raw(quoted(END_STATES))})) = (ended_at is not null)`),
    check('notifications_delivered', sql`state <> 'delivered' or delivered_at is not null`),
    check('notifications_reason', sql`(state in ('pending', 'started', 'delivered')) = (end_reason is null)`),
    check(
      'notifications_open',
      sql`state in ('pending', 'started')
        or taken_at is null and reserved_month is null and next_attempt_at is null and paused_at is null`,
    ),
    check('notifications_sequence', sql`(application_id is null) = (sequence is null)`),
    // What the login of a process may insert: workers sign it. Policies do not bind the owner, and cost an insert one look-up by key.
    pgPolicy('notifications_all', { using: sql`true` }),
    pgPolicy('notifications_insert', { as: 'restrictive', for: 'insert', withCheck: sql.raw(MAY_INSERT) }),
  ],
);

/** Attempts to deliver: written before the send, finished after it. Partitioned with their notifications. */
export const deliveryAttempts = pgTable(
  'delivery_attempts',
  {
    notificationId: text('notification_id').notNull(),
    /** 1, 2, 3 … per notification, over all generations. */
    attemptNumber: integer('attempt_number').notNull(),
    generation: integer('generation').notNull(),
    endpointId: text('endpoint_id').notNull(),
    startedAt: moment('started_at').notNull().default(serviceNow),
    finishedAt: moment('finished_at'),
    /** `unknown`: the process that sent it died before it could say. Null while it is under way. */
    outcome: text('outcome', { enum: ['delivered', 'failed', 'unknown'] }),
    failure: text('failure'),
    httpStatus: integer('http_status'),
    durationMs: integer('duration_ms'),
    /** What the endpoint asked for with Retry-After. */
    retryAfterMs: integer('retry_after_ms'),
    address: text('address'),
    /** The first 8 KiB of what it answered; without an answer a word about why, such as ECONNREFUSED. */
    answer: text('answer'),
  },
  (t) => [primaryKey({ columns: [t.notificationId, t.attemptNumber] })],
);

/** Deliveries per partner, environment, UTC month of the attempt and event type. Each notification counts once, for ever. */
export const monthlyCounts = pgTable(
  'monthly_counts',
  {
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    month: date('month', { mode: 'string' }).notNull(),
    eventType: text('event_type').notNull(),
    delivered: integer('delivered').notNull().default(0),
    failed: integer('failed').notNull().default(0),
    /** Places held by test notifications that have not ended. */
    reserved: integer('reserved').notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.partnerId, t.environment, t.month, t.eventType] }),
    check(
      'monthly_counts_not_negative',
      sql`${t.delivered} >= 0 and ${t.failed} >= 0 and ${t.reserved} >= 0`,
    ),
  ],
);
