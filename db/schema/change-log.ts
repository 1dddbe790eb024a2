import { sql } from 'drizzle-orm';
import { bigserial, index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { moment, serviceNow } from './columns';

/** Every change made through `ops`; a trigger refuses UPDATE, DELETE and TRUNCATE. */
export const changeLog = pgTable(
  'change_log',
  {
    changeId: bigserial('change_id', { mode: 'number' }).primaryKey(),
    changedAt: moment('changed_at').notNull().default(serviceNow),
    /** Who made the change: OPS_ACTOR or the login name of whoever ran the command, or the process that acted. */
    actor: text('actor').notNull(),
    /** `<noun>.<verb>`, for example `keys.revoke`. */
    action: text('action').notNull(),
    /** Id of what was changed. */
    subject: text('subject').notNull(),
    /** What changed; never a key or a secret. */
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
