import { and, asc, eq, sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { monthlyCounts } from '../schema';

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
  {
    partnerId,
    environment,
    month,
  }: { partnerId?: string | undefined; environment?: KeyEnvironment | undefined; month: string },
): Promise<MonthlyCount[]> {
  const conditions: SQL[] = [eq(monthlyCounts.month, month)];
  if (partnerId !== undefined) conditions.push(eq(monthlyCounts.partnerId, partnerId));
  if (environment !== undefined) conditions.push(eq(monthlyCounts.environment, environment));
  const { delivered, failed, reserved, eventType } = monthlyCounts;
  return db
    .select({
      partnerId: monthlyCounts.partnerId,
      environment: monthlyCounts.environment,
      eventType,
      delivered,
      failed,
      reserved,
    })
    .from(monthlyCounts)
    .where(and(...conditions))
    .orderBy(asc(monthlyCounts.partnerId), asc(monthlyCounts.environment), asc(eventType));
}

/** First day of the current UTC month by the database's clock, `2026-11-01`. */
export async function currentMonth(db: DbOrTransaction): Promise<string> {
  const [row] = await db.execute<{ month: string }>(sql`select service_month()::text as month`);
  if (row === undefined) throw new Error('service_month() returned nothing');
  return row.month;
}
