import { sql } from 'drizzle-orm';
import { bigint, index, jsonb, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { OPERATOR_EVENT_KINDS } from '../../domain/operator-event';
import { moment, serviceNow } from './columns';

/** Warnings to operators; a trigger refuses UPDATE, DELETE and TRUNCATE. */
export const operatorEvents = pgTable(
  'operator_events',
  {
    eventId: bigint('event_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    happenedAt: moment('happened_at').notNull().default(serviceNow),
    kind: text('kind', { enum: OPERATOR_EVENT_KINDS }).notNull(),
    /** Null, both: it is about no partner. */
    partnerId: text('partner_id'),
    environment: text('environment', { enum: ['sandbox', 'live'] }),
    /** Null: it is about notifications without an endpoint. */
    endpointId: text('endpoint_id'),
    /** Figures and ids; never a secret, a body or an address. */
    details: jsonb('details').$type<Readonly<Record<string, unknown>>>().notNull().default({}),
  },
  (t) => [
    // `ops events list --partner`, and whether a warning of the day has been given.
    index('operator_events_partner').on(t.partnerId, t.environment, t.kind, t.eventId),
    // One warning for a quote, whichever API process counts its applications.
    uniqueIndex('operator_events_crowded_quote')
      .on(sql`(${t.details} ->> 'service_quote_id')`)
      .where(sql`${t.kind} = 'quote_crowded'`),
  ],
);
