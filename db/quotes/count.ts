import type { Tenant } from '../../domain/tenant';
import type { MonthOf } from '../notifications/quota';
import { runPrepared, type Reader } from '../postgres/prepared';

export interface QuoteCount extends Tenant {
  readonly quotes: number;
}

// The month's partition is read as a whole: quotes have no index but their id.
const COUNT = `
  select partner_id as "partnerId", environment, count(*)::float8 as quotes from quotes
  where quote_id >= (select 'qte_' || ulid_floor($1::date::timestamp at time zone 'UTC'))
    and quote_id < (select 'qte_' || ulid_floor(($1::date + interval '1 month') at time zone 'UTC'))
    and ($2::text is null or partner_id = $2) and ($3::text is null or environment = $3)
  group by 1, 2 order by 1, 2`;

/** Quotes given in a UTC month. @param month its first day, `2026-11-01`. */
export async function countQuotes(
  db: Reader,
  { month, partnerId, environment }: MonthOf,
): Promise<QuoteCount[]> {
  return runPrepared<QuoteCount>(db, COUNT, [month, partnerId ?? null, environment ?? null]);
}
