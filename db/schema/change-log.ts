import { sql } from 'drizzle-orm';
import { bigint, index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import { moment, serviceNow } from './columns';

/** Every change made through `ops`; a trigger refuses UPDATE, DELETE and TRUNCATE. */
export const changeLog = pgTable(
  'change_log',
  {
    /** Given by Postgres alone, as the moment and the login are: processes may insert the rest (db/postgres/roles.ts). */
    changeId: bigint('change_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    changedAt: moment('changed_at').notNull().default(serviceNow),
    /** Who made the change: OPS_ACTOR or the login name of whoever ran the command, or the process that acted. */
    actor: text('actor').notNull(),
    /** The login of Postgres that wrote it: the actor is what that login says. */
    login: text('login')
      .notNull()
      .default(sql`session_user`),
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
