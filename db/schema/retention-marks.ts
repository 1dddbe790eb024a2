import { pgTable, text } from 'drizzle-orm/pg-core';
import { moment, serviceNow } from './columns';

/** How far a kind of removal that leaves the rows has come, so that no run looks at all of them again. */
export const retentionMarks = pgTable('retention_marks', {
  kind: text('kind').primaryKey(),
  /** Every notification up to this id has been dealt with. */
  doneUpTo: text('done_up_to').notNull(),
  updatedAt: moment('updated_at').notNull().default(serviceNow),
});
