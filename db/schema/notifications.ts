import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, pgPolicy, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { APPLICATION_STATES } from '../../domain/application-states';
import { END_STATES, TEST_EVENT_TYPE, ULID_PATTERN } from '../../domain/notification-states';
import { bytea, day, moment, serviceNow } from './columns';

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(', ');

/**
 * The status that partners see of an ended notification (domain/notification-states.ts). Once delivered
 * it stays so, even when a resend fails. Queries that are to use its index contain the same text.
 * @param n prefix of the columns, such as `n.`; none in the index
 */
export const endedStatus = (n = '') =>
  `case when ${n}delivered_at is not null then 'delivered' else ${n}end_state end`;

/**
 * A test belongs to a partner. Every other event agrees with its application as it is now. Texts that a claim
 * reads have a bound, as one answer of Postgres carries them for all that are claimed.
 */
const MAY_INSERT = `notification_id ~ '^ntf_${ULID_PATTERN}$' and event_id ~ '^evt_${ULID_PATTERN}$'
  and environment in ('sandbox', 'live') and octet_length(body) <= 20000 and isfinite(created_at)
  and coalesce(octet_length(request_id), 0) <= 200 and coalesce(octet_length(trace_parent), 0) <= 200
  and case when application_id is null then event_type = '${TEST_EVENT_TYPE}' and partner_id ~ '^P[0-9]{6}$' and merchant_reference is null
    else event_type in (${quoted(APPLICATION_STATES.map((state) => `credit_application.${state}`))})
      and exists (select from credit_applications a where a.application_id = notifications.application_id
        and a.partner_id = notifications.partner_id and a.environment = notifications.environment
        and a.sequence = notifications.sequence and 'credit_application.' || a.state = notifications.event_type
        and a.merchant_reference is not distinct from notifications.merchant_reference) end`;

/** Notifications with their ends; one under way has a row in `deliveries`. Partitioned by month. */
export const notifications = pgTable(
  'notifications',
  {
    notificationId: text('notification_id').primaryKey(),
    eventId: text('event_id').notNull(),
    eventType: text('event_type').notNull(),
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    /** Its application and its position among the events of that; null for a test. */
    applicationId: text('application_id'),
    sequence: integer('sequence'),
    merchantReference: text('merchant_reference'),
    /** The body that is sent and signed, byte for byte. */
    body: text('body').notNull(),
    createdAt: moment('created_at').notNull().default(serviceNow),
    /** As of its last end. While it is under way, its row in `deliveries` has both. */
    generation: integer('generation').notNull().default(1),
    attempts: integer('attempts').notNull().default(0),
    /** The first 2xx, which is counted. Never changed. */
    deliveredAt: moment('delivered_at'),
    /** First day of the UTC month that counted it as failed, which a later delivery takes back. */
    failedMonth: day('failed_month'),
    endState: text('end_state', { enum: END_STATES }),
    endReason: text('end_reason'),
    endedAt: moment('ended_at'),
    /** When its last resend was ordered. */
    sentAgainAt: moment('sent_again_at'),
    recoveryId: text('recovery_id'),
    requestId: text('request_id'),
    traceParent: text('trace_parent'),
  },
  (t) => [
    // Pages of a partner and environment (`GET /v1/notifications`), newest first, also by each filter.
    // `ops notifications list --partner` uses the first.
    index('notifications_page').on(t.environment, t.partnerId, t.notificationId),
    index('notifications_page_event_type').on(t.environment, t.partnerId, t.eventType, t.notificationId),
    index('notifications_page_event').on(t.environment, t.partnerId, t.eventId, t.notificationId),
    index('notifications_page_application')
      .on(t.environment, t.partnerId, t.applicationId, t.notificationId)
      .where(sql`${t.applicationId} is not null`),
    index('notifications_page_reference')
      .on(t.environment, t.partnerId, t.merchantReference, t.notificationId)
      .where(sql`${t.merchantReference} is not null`),
    // The same by the status of ended ones, and recoveries.
    index('notifications_page_ended')
      .on(t.environment, t.partnerId, sql`(${sql.raw(endedStatus())})`, t.notificationId)
      .where(sql`${t.endState} is not null`),
    index('notifications_recovery')
      .on(t.recoveryId)
      .where(sql`${t.recoveryId} is not null`),
    // Unqualified, because it is added to existing partitions by name.
    check('notifications_end', sql`end_state in (${sql.raw(quoted(END_STATES))})`),
    check('notifications_ended', sql`(end_state is null) = (ended_at is null)`),
    check('notifications_delivered', sql`end_state <> 'delivered' or delivered_at is not null`),
    check(
      'notifications_reason',
      sql`(coalesce(end_state, 'delivered') = 'delivered') = (end_reason is null)`,
    ),
    check('notifications_reason_length', sql`octet_length(end_reason) <= 200`),
    check('notifications_sequence', sql`(application_id is null) = (sequence is null)`),
    // Limits what the login of a process may insert, because workers sign it.
    pgPolicy('notifications_all', { using: sql`true` }),
    pgPolicy('notifications_insert', { as: 'restrictive', for: 'insert', withCheck: sql.raw(MAY_INSERT) }),
  ],
);

/** Attempts to deliver, written before the send and finished after it. Partitioned like notifications. */
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
    /**
     * `unknown`: its process died before it recorded the outcome. `ours`: no answer came, by a fault of
     * our network, so that it counts for nothing. Null while it is under way.
     */
    outcome: text('outcome', { enum: ['delivered', 'failed', 'unknown', 'ours'] }),
    failure: text('failure'),
    httpStatus: integer('http_status'),
    durationMs: integer('duration_ms'),
    retryAfterMs: integer('retry_after_ms'),
    address: text('address'),
    /** The first 8 KiB of the answer; without one the error, such as ECONNREFUSED. */
    answer: text('answer'),
  },
  (t) => [primaryKey({ columns: [t.notificationId, t.attemptNumber] })],
);

/** Counts per partner, environment, UTC month of the attempt and type; once for each notification. */
export const monthlyCounts = pgTable(
  'monthly_counts',
  {
    partnerId: text('partner_id').notNull(),
    environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
    month: day('month').notNull(),
    eventType: text('event_type').notNull(),
    delivered: integer('delivered').notNull().default(0),
    failed: integer('failed').notNull().default(0),
    /** Units of the quota that tests under way have reserved. */
    reserved: integer('reserved').notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.partnerId, t.environment, t.month, t.eventType] }),
    check(
      'monthly_counts_not_negative',
      sql`${t.delivered} >= 0 and ${t.failed} >= 0 and ${t.reserved} >= 0`,
    ),
    // Each partner has a quota of 100. A higher figure would overflow in the sums of the metrics.
    check('monthly_counts_reserved', sql`${t.reserved} <= 1000`),
  ],
);

/** One row, made by the first migration: the secret that authenticates the cursors of pages. */
export const cursorSecrets = pgTable(
  'cursor_secrets',
  {
    only: boolean('only').primaryKey().default(true),
    secret: bytea('secret').notNull(),
  },
  (t) => [check('cursor_secrets_only', sql`${t.only}`)],
);
