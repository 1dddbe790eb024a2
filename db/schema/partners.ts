import { check, pgTable, text } from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { moment, serviceNow } from './columns';

/** Who integrates with the service. */
export const partners = pgTable(
  'partners',
  {
    /** `P` and six digits. */
    partnerId: text('partner_id').primaryKey(),
    name: text('name').notNull(),
    /** An inactive partner's keys answer 401. */
    state: text('state', { enum: ['active', 'inactive'] })
      .notNull()
      .default('active'),
    /** Whether it may begin recoveries itself (`POST /v1/notifications/recover`). */
    recovery: text('recovery', { enum: ['enabled', 'disabled'] })
      .notNull()
      .default('enabled'),
    createdAt: moment('created_at').notNull().default(serviceNow),
  },
  (t) => [
    check('partners_id_form', sql`${t.partnerId} ~ '^P[0-9]{6}$'`),
    check('partners_state', sql`${t.state} in ('active', 'inactive')`),
    check('partners_recovery', sql`${t.recovery} in ('enabled', 'disabled')`),
  ],
);
