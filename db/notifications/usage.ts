import { and, asc, eq } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { monthlyCounts } from '../schema';
import { given } from '../schema/columns';

/** What was sent in one UTC month: each notification counts once, in the month of the attempt that decided. */
export interface MonthlyCount {
  readonly partnerId: string;
  readonly environment: KeyEnvironment;
  readonly eventType: string;
  readonly delivered: number;
  readonly failed: number;
  /** Places held by tests under way. */
  readonly reserved: number;
}

/** The counts of a month, of one partner or all, by environment and event type. @param month its first day, `2026-11-01`. */
export async function monthlyUsage(
  db: DbOrTransaction,
  wanted: { partnerId?: string | undefined; environment?: KeyEnvironment | undefined; month: string },
): Promise<MonthlyCount[]> {
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
