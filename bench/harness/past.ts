import type { Database, Sql } from '../../db/postgres/connect';
import { replaceServiceClock, setServiceClock } from '../../testbed/notifications';
import { say } from '../../testbed/say';

/** What has been stored before the measuring begins. */
export interface Past {
  readonly quotes: number;
  readonly notifications: number;
  /** Over so many whole months that are over, and the month that runs; 0: over the last seven days. */
  readonly quoteMonths: number;
  readonly notificationMonths: number;
}

const QUOTES_AT_ONCE = 250_000;
const NOTIFICATIONS_AT_ONCE = 50_000;
const TABLES = [
  ['quotes', 'quote_id', 'qte_', 'quoteMonths'],
  ['notifications', 'notification_id', 'ntf_', 'notificationMonths'],
  ['delivery_attempts', 'notification_id', 'ntf_', 'notificationMonths'],
] as const;

/**
 * Stores quotes, applications, notifications and attempts as the service leaves them, evenly over the time. Quotes have one
 * product, and so are shorter than most.
 */
export async function storePast(database: Database, partners: readonly string[], past: Past): Promise<void> {
  const { sql } = database;
  for (const [table, column, prefix, months] of TABLES) {
    for (let ago = past[months]; ago > 0; ago -= 1) {
      const day = `date_trunc('month', clock_timestamp(), 'UTC') - interval '${ago} months' + interval '1 day'`;
      await replaceServiceClock(database, day);
      await sql`select ensure_month_partitions(${table}, ${column}, ${prefix}, 0)`;
    }
  }
  await setServiceClock(database, null);
  // 0 to 1: from the oldest moment to the newest, which is a minute ago.
  const since = (months: number) =>
    months === 0
      ? `interval '7 days'`
      : `(now() - (date_trunc('month', now(), 'UTC') - interval '${months} months'))`;
  const at = (months: number, all: number) =>
    `now() - interval '1 minute' - ${since(months)} * (1 - first::float8 / ${all})`;
  for (let from = 1; from <= past.quotes; from += QUOTES_AT_ONCE) {
    const to = Math.min(past.quotes, from + QUOTES_AT_ONCE - 1);
    await storeQuotes(sql, partners, { from, to, at: at(past.quoteMonths, past.quotes) });
    if (to % 1_000_000 === 0) say(`${to} quotes`);
  }
  for (let from = 1; from <= past.notifications; from += NOTIFICATIONS_AT_ONCE) {
    const to = Math.min(past.notifications, from + NOTIFICATIONS_AT_ONCE - 1);
    await storeNotifications(sql, partners, {
      from,
      to,
      at: at(past.notificationMonths, past.notifications),
    });
    if (to % 250_000 === 0) say(`${to} notifications`);
  }
  await sql.unsafe('vacuum (analyze) quotes, notifications, delivery_attempts, credit_applications');
  await sql.unsafe('checkpoint');
}

interface Batch {
  readonly from: number;
  readonly to: number;
  /** When the row `first` was stored, in SQL. */
  readonly at: string;
}

// A moment for four at a time: the ULID of a moment costs more than a row.
const rowsOf = ({ from, to, at }: Batch) => `
  select g, first, at, low || lpad(first::text, 16, '0') as first_ulid, low || lpad(g::text, 16, '0') as ulid
  from generate_series(${from}, ${to}, 4) first, lateral (select ${at} as at offset 0) moment,
    lateral (select left(ulid_floor(moment.at), 10) as low offset 0) ulids,
    generate_series(first, least(first + 3, ${to})) g`;

async function storeQuotes(sql: Sql, partners: readonly string[], batch: Batch): Promise<void> {
  await sql.unsafe(
    `insert into quotes (quote_id, created_at, partner_id, key_id, environment, merchant_id, loan_pence, deposit_pence,
      merchant_finance_url, merchant_reference, request_id, response, fitted)
    select 'qte_' || ulid, at, ($1::text[])[1 + g % cardinality($1::text[])], 'key_x', 'live', 'M1000002', 50000 + g % 100000, 10000,
      'https://shop.example/finance?basket=1', 'order ' || g, 'rq_' || g, '{"success":true,"data":{"products":[]}}',
      '[["prd_1",1,"Example Bank","Classic 12",10000,90000,7891,94692]]'
    from (${rowsOf(batch)}) r`,
    [partners as string[]],
  );
}

/** Four of each application; one in ten has failed. */
async function storeNotifications(sql: Sql, partners: readonly string[], batch: Batch): Promise<void> {
  await sql.unsafe(
    `with past as materialized (
      select r.*, 'ntf_' || ulid as id, g % 10 = 3 as failed, 'app_' || first_ulid as application, 1 + g - first as sequence,
        ($1::text[])[1 + (first / 4) % cardinality($1::text[])] as partner
      from (${rowsOf(batch)}) r),
    applications as (
      insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment, merchant_id,
        merchant_reference, loan_pence, deposit_pence, credit_product, state, sequence, created_at, updated_at)
      select application, 'lender_a', application, 'qte_' || ulid, partner, 'live', 'M1000002', 'order ' || first, 90000, 10000,
        'Classic 12', 'completed', 4, at, at
      from past where sequence = 1),
    stored as (
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
        merchant_reference, body, end_state, end_reason, attempts, delivered_at, ended_at, created_at)
      select id, 'evt_' || ulid, 'credit_application.' || (array['accepted', 'signed', 'paid_out', 'completed'])[sequence],
        partner, 'live', application, sequence, 'order ' || first, repeat('x', 700),
        case when failed then 'failed' else 'delivered' end, case when failed then 'exhausted' end, 1,
        case when not failed then at end, at, at
      from past)
    insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id, started_at, finished_at, outcome,
      failure, http_status, duration_ms)
    select id, 1, 1, 'whe_x', at, at, case when failed then 'failed' else 'delivered' end, case when failed then 'http_status' end,
      case when failed then 500 else 200 end, 20
    from past`,
    [partners as string[]],
  );
}
