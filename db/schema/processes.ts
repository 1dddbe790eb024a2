import { sql } from 'drizzle-orm';
import { boolean, check, integer, pgTable, primaryKey, smallint, text } from 'drizzle-orm/pg-core';
import { moment, serviceNow } from './columns';

/** The API and worker processes of the last day. Each writes every ten seconds that it runs. */
export const processes = pgTable(
  'processes',
  {
    processId: text('process_id').primaryKey(),
    kind: text('kind', { enum: ['api', 'worker'] }).notNull(),
    host: text('host').notNull(),
    build: text('build'),
    startedAt: moment('started_at').notNull().default(serviceNow),
    seenAt: moment('seen_at').notNull().default(serviceNow),
    /** When it last reached Temporal: workers only. */
    temporalAt: moment('temporal_at'),
    /** Since when its network reaches nobody: workers only. */
    cutOffSince: moment('cut_off_since'),
    /** The number under which queues belong to a worker that starts deliveries; null: it starts none. */
    seat: smallint('seat'),
    stoppedAt: moment('stopped_at'),
    /** What it cannot do although it runs, in words. */
    trouble: text('trouble'),
  },
  (t) => [check('processes_kind', sql`${t.kind} in ('api', 'worker')`)],
);

/**
 * Outages: no worker ran or reached Postgres (`workers`), none reached Temporal, or a worker's network
 * reached nobody (`network`). Kept for reports.
 */
export const outages = pgTable(
  'outages',
  {
    kind: text('kind', { enum: ['workers', 'temporal', 'network'] }).notNull(),
    beganAt: moment('began_at').notNull(),
    endedAt: moment('ended_at').notNull().default(serviceNow),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.beganAt] }),
    check('outages_kind', sql`${t.kind} in ('workers', 'temporal', 'network')`),
  ],
);

/** What a worker counted over all rows: one row, which all workers and `ops status` show. */
export const figures = pgTable(
  'figures',
  {
    singleton: boolean('singleton').primaryKey().default(true),
    countedAt: moment('counted_at').notNull(),
    /** How long that took, in milliseconds. */
    tookMs: integer('took_ms').notNull(),
    /** As `Figures` (db/figures.ts), in JSON. */
    figures: text('figures').notNull(),
  },
  (t) => [check('figures_singleton', sql`${t.singleton}`)],
);

/** Backups that were completed; the script of the backup writes them. */
export const backups = pgTable('backups', {
  completedAt: moment('completed_at').primaryKey().default(serviceNow),
});
