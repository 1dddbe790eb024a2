import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../connect';

/** Successful test deliveries per partner, environment and UTC month (spec §8). */
export const TEST_LIMIT_PER_MONTH = 100;

/** Whose month it is. */
export interface CountedBy {
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
  readonly eventType: string;
}

/**
 * Takes a place in the current UTC month of the database's clock: one conditional UPDATE, so that concurrent callers
 * can never take more than there are. Waits for whoever holds the row.
 * @returns the month's first day, `2026-11-01`; null when delivered and reserved have reached the limit.
 */
export async function reserveMonth(
  tx: DbOrTransaction,
  { partnerId, environment, eventType }: CountedBy,
  limit = TEST_LIMIT_PER_MONTH,
): Promise<string | null> {
  await tx.execute(sql`
    insert into monthly_counts (partner_id, environment, month, event_type)
    values (${partnerId}, ${environment}, service_month(), ${eventType}) on conflict do nothing`);
  const taken = await tx.execute<{ month: string }>(sql`
    update monthly_counts set reserved = reserved + 1
    where partner_id = ${partnerId} and environment = ${environment} and month = service_month()
      and event_type = ${eventType} and delivered + reserved < ${limit}
    returning month::text`);
  return taken[0]?.month ?? null;
}

/** First day of the UTC month of the database's clock, `2026-11-01`. */
export async function currentMonth(tx: DbOrTransaction): Promise<string> {
  const [row] = await tx.execute<{ month: string }>(sql`select service_month()::text as month`);
  if (row === undefined) throw new Error('the database did not say which month it is');
  return row.month;
}

/** Gives a reserved place back. */
export async function releaseMonth(
  tx: DbOrTransaction,
  { partnerId, environment, eventType }: CountedBy,
  month: string,
): Promise<void> {
  await tx.execute(sql`
    update monthly_counts set reserved = reserved - 1
    where partner_id = ${partnerId} and environment = ${environment} and month = ${month}::date
      and event_type = ${eventType}`);
}

/** What stands against the limit this month, and when the month ends. */
export async function monthUse(
  db: DbOrTransaction,
  { partnerId, environment, eventType }: CountedBy,
): Promise<{ delivered: number; reserved: number; monthEndsAt: Date }> {
  const [row] = await db.execute<{ delivered: number; reserved: number; ends: string }>(sql`
    select coalesce(c.delivered, 0)::int as delivered, coalesce(c.reserved, 0)::int as reserved,
      to_char(m.month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"') as ends
    from (select service_month() as month) m
    left join monthly_counts c on c.partner_id = ${partnerId} and c.environment = ${environment}
      and c.month = m.month and c.event_type = ${eventType}`);
  return {
    delivered: row?.delivered ?? 0,
    reserved: row?.reserved ?? 0,
    monthEndsAt: new Date(row?.ends ?? Number.NaN),
  };
}
