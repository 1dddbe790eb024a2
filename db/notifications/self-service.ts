import type { EndpointQueue } from './hold';
import type { MonthOf } from './usage';
import { runPrepared, type Reader } from '../postgres/prepared';

/** What a partner has sent again by itself, under its keys. */
export interface SelfService extends EndpointQueue {
  /** Single notifications. */
  readonly resends: number;
  readonly recoveries: number;
  /** Notifications that its recoveries have sent. */
  readonly recovered: number;
}

// The change log has every resend with the key that asked for it; those of a recovery have its id, and are counted in its row.
const COUNT = `
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

/** Who has sent what again in a UTC month; partners that have not are left out. @param month its first day, `2026-11-01`. */
export async function selfService(
  db: Reader,
  { month, partnerId, environment }: MonthOf,
): Promise<SelfService[]> {
  return runPrepared<SelfService>(db, COUNT, [month, partnerId ?? null, environment ?? null]);
}
