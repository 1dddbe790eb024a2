import type { Tenant } from '../../domain/tenant';
import { runPrepared, type Reader } from '../postgres/prepared';
import type { monthlyCounts } from '../schema';

/** Successful test deliveries per partner, environment and UTC month. */
export const TEST_LIMIT_PER_MONTH = 100;

interface Counted extends Tenant {
  readonly eventType: string;
}

const parametersOf = ({ partnerId, environment, eventType }: Counted) => [partnerId, environment, eventType];

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
export async function reserveMonth(reader: Reader, counted: Counted): Promise<string | null> {
  await addMonth(reader, counted);
  const text = `${TAKE_UNIT} returning month::text as month`;
  const [taken] = await runPrepared<{ month: string }>(reader, text, parametersOf(counted));
  return taken?.month ?? null;
}

export async function addMonth(reader: Reader, counted: Counted): Promise<void> {
  await runPrepared(
    reader,
    `insert into monthly_counts (partner_id, environment, month, event_type)
     values ($1, $2, service_month(), $3) on conflict do nothing`,
    parametersOf(counted),
  );
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

const MONTH_USE = `
  select coalesce(c.delivered, 0)::int as delivered, coalesce(c.reserved, 0)::int as reserved,
    to_char(m.month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"') as ends,
    ceil(extract(epoch from (m.month + interval '1 month') at time zone 'UTC' - service_now()))::int as seconds
  from (select service_month() as month) m
  left join monthly_counts c on c.partner_id = $1 and c.environment = $2 and c.month = m.month and c.event_type = $3`;

export async function monthUse(reader: Reader, counted: Counted): Promise<MonthUse> {
  const [row] = await runPrepared<{ delivered: number; reserved: number; ends: string; seconds: number }>(
    reader,
    MONTH_USE,
    parametersOf(counted),
  );
  return {
    delivered: row?.delivered ?? 0,
    reserved: row?.reserved ?? 0,
    monthEndsAt: new Date(row?.ends ?? Number.NaN),
    secondsToMonthEnd: Math.max(1, row?.seconds ?? 1),
  };
}

/** What was sent in one UTC month: each notification counts once, in the month of the attempt that decided. */
export type MonthlyCount = Readonly<Omit<typeof monthlyCounts.$inferSelect, 'month'>>;

/** A month by its first day, `2026-11-01`, and whose of it; those of all when not named. */
export interface MonthOf {
  readonly month: string;
  readonly partnerId?: string | undefined;
  readonly environment?: Tenant['environment'] | undefined;
}

/** First day of the UTC month of the database's clock, `2026-11-01`. */
export async function currentMonth(reader: Reader): Promise<string> {
  const [row] = await runPrepared<{ month: string }>(reader, 'select service_month()::text as month');
  if (row === undefined) throw new Error('the database did not say which month it is');
  return row.month;
}

const USAGE = `
  select partner_id as "partnerId", environment, event_type as "eventType", delivered, failed, reserved
  from monthly_counts
  where month = $1::date and ($2::text is null or partner_id = $2) and ($3::text is null or environment = $3)
  order by 1, 2, 3`;

/** The counts of a month, by partner, environment and event type. `reserved` are the units of tests under way. */
export async function monthlyUsage(
  reader: Reader,
  { month, partnerId, environment }: MonthOf,
): Promise<MonthlyCount[]> {
  return runPrepared<MonthlyCount>(reader, USAGE, [month, partnerId ?? null, environment ?? null]);
}

/** What a partner has sent again by itself, under its keys. */
export interface SelfService extends Tenant {
  /** Single notifications. */
  readonly resends: number;
  readonly recoveries: number;
  /** Notifications that its recoveries have sent. */
  readonly recovered: number;
}

// The change log has every resend with the key that asked for it; those of a recovery have its id, and are counted in its row.
const SELF_SERVICE = `
  with span as (select $1::date::timestamp at time zone 'UTC' as first, ($1::date + interval '1 month') at time zone 'UTC' as last),
  resends as (
    select n.partner_id, n.environment, count(*) as resends
    from change_log c join notifications n on n.notification_id = c.subject, span
    where c.action = 'notifications.resend' and c.actor like 'key\\_%' and c.details ->> 'recovery_id' is null
      and c.changed_at >= first and c.changed_at < last and c.details ->> 'partner_id' is not null
      and ($2::text is null or c.details ->> 'partner_id' = $2)
    group by 1, 2),
  recovered as (
    select partner_id, environment, count(*) as recoveries, sum(sent) as recovered
    from recoveries, span
    where key_id is not null and created_at >= first and created_at < last and ($2::text is null or partner_id = $2)
    group by 1, 2)
  select partner_id as "partnerId", environment, coalesce(resends, 0)::int as resends,
    coalesce(recoveries, 0)::int as recoveries, coalesce(recovered, 0)::int as recovered
  from resends full join recovered using (partner_id, environment)
  where $3::text is null or environment = $3
  order by 1, 2`;

/** Who has sent what again in a UTC month; partners that have not are left out. */
export async function selfService(
  reader: Reader,
  { month, partnerId, environment }: MonthOf,
): Promise<SelfService[]> {
  return runPrepared<SelfService>(reader, SELF_SERVICE, [month, partnerId ?? null, environment ?? null]);
}
