import { and, asc, eq } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { monthlyCounts } from '../schema';
import { given } from '../schema/columns';

/** What was sent in one UTC month: each notification counts once, in the month of the attempt that decided. */
export type MonthlyCount = Readonly<Omit<typeof monthlyCounts.$inferSelect, 'month'>>;

/** A month by its first day, `2026-11-01`, and whose of it; those of all when not named. */
export interface MonthOf {
  readonly month: string;
  readonly partnerId?: string | undefined;
  readonly environment?: KeyEnvironment | undefined;
}

/** The counts of a month, by partner, environment and event type. `reserved` are the units of tests under way. */
export async function monthlyUsage(db: DbOrTransaction, wanted: MonthOf): Promise<MonthlyCount[]> {
  const { month, partnerId, environment, eventType, delivered, failed, reserved } = monthlyCounts;
  return db
    .select({ partnerId, environment, eventType, delivered, failed, reserved })
    .from(monthlyCounts)
    .where(
      and(
        eq(month, wanted.month),
        given(partnerId, wanted.partnerId),
        given(environment, wanted.environment),
      ),
    )
    .orderBy(asc(partnerId), asc(environment), asc(eventType));
}
