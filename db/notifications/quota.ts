import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { runPrepared, type Reader } from '../postgres/prepared';

/** Successful test deliveries per partner, environment and UTC month. */
export const TEST_LIMIT_PER_MONTH = 100;

interface CountedBy {
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
  readonly eventType: string;
}

/** Of the current month's count; its parameters are partner, environment and event type. */
export const OF_THIS_MONTH = `partner_id = $1 and environment = $2 and event_type = $3 and month = service_month()`;

/**
 * One conditional UPDATE, so that concurrent callers can never take more than there are. It waits for whoever holds the
 * row; a full month is seen without waiting.
 */
export const TAKE_UNIT = `
  update monthly_counts set reserved = reserved + 1
  where ${OF_THIS_MONTH} and delivered + reserved < ${TEST_LIMIT_PER_MONTH}`;

/**
 * Takes a unit of the quota of the current UTC month of the database's clock.
 * @returns the month's first day, `2026-11-01`; null when delivered and reserved have reached the limit.
 */
export async function reserveMonth(tx: Reader, counted: CountedBy): Promise<string | null> {
  await addMonth(tx, counted);
  const parameters = [counted.partnerId, counted.environment, counted.eventType];
  const text = `${TAKE_UNIT} returning month::text as month`;
  const [taken] = await runPrepared<{ month: string }>(tx, text, parameters);
  return taken?.month ?? null;
}

export async function addMonth(
  reader: Reader,
  { partnerId, environment, eventType }: CountedBy,
): Promise<void> {
  await runPrepared(
    reader,
    `insert into monthly_counts (partner_id, environment, month, event_type)
     values ($1, $2, service_month(), $3) on conflict do nothing`,
    [partnerId, environment, eventType],
  );
}

/** First day of the UTC month of the database's clock, `2026-11-01`. */
export async function currentMonth(tx: DbOrTransaction): Promise<string> {
  const [row] = await tx.execute<{ month: string }>(sql`select service_month()::text as month`);
  if (row === undefined) throw new Error('the database did not say which month it is');
  return row.month;
}

/** Never below nothing: a row that reserved no unit of this type, a forged one say, would else be tried again without end. */
export async function releaseMonth(
  tx: DbOrTransaction,
  { partnerId, environment, eventType }: CountedBy,
  month: string,
): Promise<void> {
  await tx.execute(sql`
    update monthly_counts set reserved = greatest(reserved - 1, 0)
    where partner_id = ${partnerId} and environment = ${environment} and month = ${month}::date
      and event_type = ${eventType}`);
}

export interface MonthUse {
  readonly delivered: number;
  /** Under way: each counts against the limit until it has ended. */
  readonly reserved: number;
  /** First moment of the next month, UTC. */
  readonly monthEndsAt: Date;
  /** Until then by the database's clock, rounded up; at least 1. */
  readonly secondsToMonthEnd: number;
}

export async function monthUse(
  reader: Reader,
  { partnerId, environment, eventType }: CountedBy,
): Promise<MonthUse> {
  const [row] = await runPrepared<{ delivered: number; reserved: number; ends: string; seconds: number }>(
    reader,
    `select coalesce(c.delivered, 0)::int as delivered, coalesce(c.reserved, 0)::int as reserved,
      to_char(m.month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"') as ends,
      ceil(extract(epoch from (m.month + interval '1 month') at time zone 'UTC' - service_now()))::int as seconds
    from (select service_month() as month) m
    left join monthly_counts c on c.partner_id = $1 and c.environment = $2
      and c.month = m.month and c.event_type = $3`,
    [partnerId, environment, eventType],
  );
  return {
    delivered: row?.delivered ?? 0,
    reserved: row?.reserved ?? 0,
    monthEndsAt: new Date(row?.ends ?? Number.NaN),
    secondsToMonthEnd: Math.max(1, row?.seconds ?? 1),
  };
}

/** Adds to the count of a month; the deliveries or failures of a notification are counted once. */
export async function addToCount(
  tx: DbOrTransaction,
  { partnerId, environment, eventType }: CountedBy,
  month: string,
  { delivered = 0, failed = 0 }: { delivered?: number; failed?: number },
): Promise<void> {
  await tx.execute(sql`
    insert into monthly_counts as c (partner_id, environment, month, event_type, delivered, failed)
    values (${partnerId}, ${environment}, ${month}::date, ${eventType}, ${Math.max(delivered, 0)}, ${Math.max(failed, 0)})
    on conflict (partner_id, environment, month, event_type)
    do update set delivered = c.delivered + ${delivered}, failed = c.failed + ${failed}`);
}
