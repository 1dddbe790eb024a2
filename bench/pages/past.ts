import type { Database } from '../../db/postgres/connect';

const MONTHS = 4;
const AT_ONCE = 50_000;

/** Stores what a partner has been sent over four months, each with one attempt; one in a hundred has failed. */
export async function storePast({ sql }: Database, partnerId: string, rows: number): Promise<void> {
  const clock = (moment: string) =>
    sql.unsafe(
      `create or replace function service_now() returns timestamptz language sql volatile as $$select ${moment}$$`,
    );
  for (let month = MONTHS; month > 0; month -= 1) {
    await clock(`clock_timestamp() - interval '${month} months'`);
    for (const table of ['notifications', 'delivery_attempts'])
      await sql`select ensure_month_partitions(${table}, 'notification_id', 'ntf_', 0)`;
  }
  await clock('clock_timestamp()');
  for (let from = 1; from <= rows; from += AT_ONCE) {
    await sql`
      with past as (
        select g, 'ntf_' || left(ulid_floor(at), 10) || lpad(g::text, 16, '0') as id, at, g % 100 = 3 as failed
        from generate_series(${from}::int, ${Math.min(rows, from + AT_ONCE - 1)}::int) g,
          lateral (select now() - (${rows}::int - g) * (interval '110 days' / ${rows}::int) as at) one),
      stored as (
        insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
          merchant_reference, body, state, end_reason, attempts, delivered_at, ended_at, created_at)
        select id, 'evt_' || g, 'credit_application.' || (array['accepted', 'signed', 'paid_out'])[1 + g % 3],
          ${partnerId}, 'live', 'app_' || g / 4, 1 + g % 4, 'order ' || g / 4, repeat('x', 700),
          case when failed then 'failed' else 'delivered' end, case when failed then 'exhausted' end, 1,
          case when not failed then at end, at, at
        from past)
      insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id, started_at, finished_at,
        outcome, http_status, duration_ms)
      select id, 1, 1, 'whe_x', at, at, case when failed then 'failed' else 'delivered' end,
        case when failed then 500 else 200 end, 20
      from past`;
  }
  await sql.unsafe('analyze notifications, delivery_attempts');
}
