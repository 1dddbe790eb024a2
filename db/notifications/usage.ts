import { and, asc, eq, getTableColumns } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { monthlyCounts } from '../schema';
import { given } from '../schema/columns';

/** What was sent in one UTC month: each notification counts once, in the month of the attempt that decided. */
export type MonthlyCount = Omit<typeof monthlyCounts.$inferSelect, 'partnerId' | 'month'>;

/** The counts of a partner and month, by environment and event type. @param month its first day, `2026-11-01`. */
export async function monthlyUsage(
  db: DbOrTransaction,
  wanted: { partnerId: string; environment?: KeyEnvironment | undefined; month: string },
): Promise<MonthlyCount[]> {
  const { partnerId, month, ...shown } = getTableColumns(monthlyCounts);
  return db
    .select(shown)
    .from(monthlyCounts)
    .where(
      and(
        eq(partnerId, wanted.partnerId),
        eq(month, wanted.month),
        given(monthlyCounts.environment, wanted.environment),
      ),
    )
    .orderBy(asc(monthlyCounts.environment), asc(monthlyCounts.eventType));
}
