import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';

/**
 * The attempts of the rows of a named query (`due`, `old`, …) that are not finished, closed as `unknown`: the process that
 * sent them did not live to record their outcome.
 */
export const closeUnfinishedText = (rows: string) => `
  update delivery_attempts a set finished_at = service_now(), outcome = 'unknown'
  from ${rows} where a.notification_id = ${rows}.notification_id and a.finished_at is null`;

/** The same for one notification. */
export async function closeUnfinished(tx: DbOrTransaction, notificationId: string): Promise<void> {
  await tx.execute(
    sql`with one as (select ${notificationId}::text as notification_id) ${sql.raw(closeUnfinishedText('one'))}`,
  );
}
