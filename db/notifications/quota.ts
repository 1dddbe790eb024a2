import type { Tenant } from '../../domain/tenant';
import { oneRow, runPrepared, type Reader } from '../postgres/connect';
import { Refused } from '../refused';
import type { monthlyCounts } from '../schema';

export const TEST_LIMIT_PER_MONTH = 100;

interface Counted extends Tenant {
  readonly eventType: string;
}

const parametersOf = ({ partnerId, environment, eventType }: Counted) => [partnerId, environment, eventType];

/** The current month's count. Parameters: partner, environment, event type. */
export const THIS_MONTH = `partner_id = $1 and environment = $2 and event_type = $3 and month = service_month()`;

/** One conditional UPDATE, so that concurrent callers never take more units than there are. */
export const TAKE_UNIT = `
  update monthly_counts set reserved = reserved + 1
  where ${THIS_MONTH} and delivered + reserved < ${TEST_LIMIT_PER_MONTH}`;

/**
 * Takes a unit of this UTC month's quota.
 * @returns the month's first day; null when delivered and reserved have reached the limit
 */
export async function reserveMonth(reader: Reader, counted: Counted): Promise<string | null> {
  await addMonth(reader, counted);
  const text = `${TAKE_UNIT} returning month::text as month`;
  const [taken] = await runPrepared<{ month: string }>(reader, text, parametersOf(counted));
  return taken?.month ?? null;
}

const ADD_MONTH = `
  insert into monthly_counts (partner_id, environment, month, event_type)
  values ($1, $2, service_month(), $3) on conflict do nothing`;

export const addMonth = (reader: Reader, counted: Counted) =>
  runPrepared(reader, ADD_MONTH, parametersOf(counted));

interface MonthUse {
  readonly delivered: number;
  /** Units of tests under way. Each counts against the limit until its test has ended. */
  readonly reserved: number;
  readonly monthEndsAt: Date;
  /** Seconds until then by the database's clock, rounded up; at least 1. */
  readonly secondsToMonthEnd: number;
}

const MONTH_USE = `
  select coalesce(c.delivered, 0)::int as delivered, coalesce(c.reserved, 0)::int as reserved,
    to_char(m.month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"') as ends,
    ceil(extract(epoch from (m.month + interval '1 month') at time zone 'UTC' - service_now()))::int as seconds
  from (select service_month() as month) m
  left join monthly_counts c on c.partner_id = $1 and c.environment = $2 and c.month = m.month and c.event_type = $3`;

export async function monthUse(reader: Reader, counted: Counted): Promise<MonthUse> {
  type Row = Pick<MonthUse, 'delivered' | 'reserved'> & { readonly ends: string; readonly seconds: number };
  const { ends, seconds, ...use } = await oneRow<Row>(reader, MONTH_USE, parametersOf(counted));
  return { ...use, monthEndsAt: new Date(ends), secondsToMonthEnd: Math.max(1, seconds) };
}

export class TestLimitReached extends Refused {
  constructor(
    { partnerId, environment }: Tenant,
    readonly use: MonthUse,
  ) {
    super(
      'conflict',
      `The limit of ${TEST_LIMIT_PER_MONTH} test notifications is reached for ${partnerId}, ${environment}: ${use.delivered} delivered and ` +
        `${use.reserved} under way this month, which ends at ${use.monthEndsAt.toISOString()}.`,
    );
  }
}

/** Counts of one UTC month. Each notification counts once, in the month of the attempt that ended it. */
export type MonthlyCount = Readonly<Omit<typeof monthlyCounts.$inferSelect, 'month'>>;

/** A month by its first day, `2026-11-01`, of all partners and environments or of those given. */
export interface MonthOf extends Partial<Tenant> {
  readonly month: string;
}

/** First day of the UTC month of the database's clock, `2026-11-01`. */
export const currentMonth = async (reader: Reader) =>
  (await oneRow<{ month: string }>(reader, 'select service_month()::text as month')).month;

const USAGE = `
  select partner_id as "partnerId", environment, event_type as "eventType", delivered, failed, reserved
  from monthly_counts
  where month = $1::date and ($2::text is null or partner_id = $2) and ($3::text is null or environment = $3)
  order by 1, 2, 3`;

export const monthlyUsage = (reader: Reader, { month, partnerId, environment }: MonthOf) =>
  runPrepared<MonthlyCount>(reader, USAGE, [month, partnerId ?? null, environment ?? null]);

export interface SelfService extends Tenant {
  readonly resends: number;
  readonly recoveries: number;
  readonly recovered: number;
}

// The change log has every resend with its key. Those of a recovery count in its row.
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

export const selfService = (reader: Reader, { month, partnerId, environment }: MonthOf) =>
  runPrepared<SelfService>(reader, SELF_SERVICE, [month, partnerId ?? null, environment ?? null]);
