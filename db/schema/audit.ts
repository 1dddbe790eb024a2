import { sql } from 'drizzle-orm';
import { check, index, integer, jsonb, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { OPERATOR_EVENT_KINDS } from '../../domain/operator-event';
import { LEAST_RETENTION_DAYS, RETENTION_KINDS } from '../../domain/retention';
import { moment, rowNumber, serviceNow } from './columns';

/**
 * Every change made through `ops`, and rows changed past it (`log_change`, for which alone it has a column
 * `transaction_id`); a trigger refuses UPDATE, DELETE and TRUNCATE.
 */
export const changeLog = pgTable(
  'change_log',
  {
    /** Postgres sets number, moment and login, and processes insert the rest (db/postgres/roles.ts). */
    changeId: rowNumber('change_id'),
    changedAt: moment('changed_at').notNull().default(serviceNow),
    /** OPS_ACTOR or the login name of the person, or the process that acted. */
    actor: text('actor').notNull(),
    login: text('login')
      .notNull()
      .default(sql`session_user`),
    /** `<noun>.<verb>`, for example `keys.revoke`. */
    action: text('action').notNull(),
    subject: text('subject').notNull(),
    details: jsonb('details').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  },
  (t) => [
    // `ops changes list --subject`.
    index('change_log_subject').on(t.subject),
    // `ops changes list --partner`: the changes of its keys, endpoints, secrets and notifications.
    index('change_log_partner')
      .on(sql`(${t.details} ->> 'partner_id')`, t.changeId)
      .where(sql`${t.details} ->> 'partner_id' is not null`),
  ],
);

/** Warnings to operators; a trigger refuses UPDATE, DELETE and TRUNCATE. */
export const operatorEvents = pgTable(
  'operator_events',
  {
    eventId: rowNumber('event_id'),
    happenedAt: moment('happened_at').notNull().default(serviceNow),
    kind: text('kind', { enum: OPERATOR_EVENT_KINDS }).notNull(),
    /** Both are null when it is about no partner. */
    partnerId: text('partner_id'),
    environment: text('environment', { enum: ['sandbox', 'live'] }),
    endpointId: text('endpoint_id'),
    /** Figures and ids, never a secret, a body or an address. */
    details: jsonb('details').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  },
  (t) => [
    // `ops events list --partner`, and whether a warning of the day has been given.
    index('operator_events_partner').on(t.partnerId, t.environment, t.kind, t.eventId),
    // What lenders contradicted in the last 24 hours (`ops status`, a metric).
    index('operator_events_kind').on(t.kind, t.happenedAt),
    // One warning for a quote, whichever API process counts its applications.
    uniqueIndex('operator_events_crowded_quote')
      .on(sql`(${t.details} ->> 'service_quote_id')`)
      .where(sql`${t.kind} = 'quote_crowded'`),
  ],
);

/** Days that each kind is kept. Only `migrate` writes here, with the login of the schema's owner. */
export const retentionDays = pgTable(
  'retention_days',
  {
    kind: text('kind', { enum: RETENTION_KINDS }).primaryKey(),
    days: integer('days').notNull(),
  },
  (t) => [
    check('retention_days_least', sql`${t.days} between ${sql.raw(String(LEAST_RETENTION_DAYS))} and 36500`),
  ],
);

/** The position of the removal of payloads, so that no run reads all rows again. */
export const retentionMarks = pgTable('retention_marks', {
  kind: text('kind').primaryKey(),
  doneUpTo: text('done_up_to').notNull(),
  updatedAt: moment('updated_at').notNull().default(serviceNow),
});
