import { sql } from 'drizzle-orm';
import type { Db, DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { closeUnfinishedText } from './close-unfinished';
import { hasActiveEndpoint } from './hold';
import { updateSql } from './update';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';

/** So long a notification is held; then it is of no more use to anybody. */
export const HELD_FOR_DAYS = 30;
/** Operators are warned this long before. */
export const EXPIRY_WARNING_DAYS = 7;

/** One warning a day and queue is enough to act on. */
const WARN_EVERY_HOURS = 24;

type Count = { readonly partnerId: string; readonly environment: KeyEnvironment; readonly count: number };

/**
 * Gives up what has been held for 30 days and still has no endpoint. It counts as failed, in this month; delivered later
 * by hand, it moves to the delivered.
 * @returns what operators should know, which has been written down, queue by queue; empty when nothing was left to expire.
 */
export async function expireHeld(db: Db, { limit }: { limit: number }): Promise<OperatorEvent[]> {
  return db.transaction(async (tx) => {
    const expired = await tx.execute<Count & { first: string; last: string }>(sql`
      with old as (
        select n.notification_id, n.partner_id, n.environment, n.event_type, n.delivered_at, n.failed_month
        from notifications n
        where n.state = 'held' and n.held_at <= service_now() - make_interval(days => ${HELD_FOR_DAYS}::int)
          and not ${hasActiveEndpoint('n')}
        order by n.held_at limit ${limit} for update of n skip locked),
      closed as (
        ${sql.raw(closeUnfinishedText('old'))}),
      ended as (
        ${updateSql('expire', {
          end_reason: sql`'held_too_long'`,
          failed_month: sql`case when t.delivered_at is null then coalesce(t.failed_month, service_month()) end`,
        })}
        from old where t.notification_id = old.notification_id),
      counted as (
        insert into monthly_counts as c (partner_id, environment, month, event_type, failed)
        select partner_id, environment, service_month(), event_type, count(*)::int from old
        where delivered_at is null and failed_month is null
        group by partner_id, environment, event_type
        order by partner_id, environment, event_type
        on conflict (partner_id, environment, month, event_type) do update set failed = c.failed + excluded.failed)
      select partner_id as "partnerId", environment, count(*)::int as count,
        min(notification_id) as first, max(notification_id) as last
      from old group by 1, 2 order by 1, 2`);
    const events = expired.map(
      ({ partnerId, environment, ...details }) =>
        ({ kind: 'notifications_expired', partnerId, environment, endpointId: null, details }) as const,
    );
    await appendOperatorEvents(tx, events);
    return events;
  });
}

/**
 * Warns of held notifications that expire within seven days, once a day for each queue that has some.
 * @returns the warnings, which have been written down.
 */
export async function warnOfExpiry(db: Db): Promise<OperatorEvent[]> {
  return db.transaction(async (tx) => {
    if (!(await alone(tx))) return [];
    const days = HELD_FOR_DAYS - EXPIRY_WARNING_DAYS;
    const due = await tx.execute<Count & { from: string }>(sql`
      select n.partner_id as "partnerId", n.environment, count(*)::int as count,
        to_char((min(n.held_at) + make_interval(days => ${HELD_FOR_DAYS}::int)) at time zone 'UTC',
          'YYYY-MM-DD"T"HH24:MI:SS"Z"') as from
      from notifications n
      where n.state = 'held' and n.held_at <= service_now() - make_interval(days => ${days}::int)
        and not exists (
          select 1 from operator_events o
          where o.partner_id = n.partner_id and o.environment = n.environment and o.kind = 'notifications_expiring'
            and o.happened_at > service_now() - make_interval(hours => ${WARN_EVERY_HOURS}::int))
      group by 1, 2 order by 1, 2`);
    const events = due.map(
      ({ partnerId, environment, ...details }) =>
        ({ kind: 'notifications_expiring', partnerId, environment, endpointId: null, details }) as const,
    );
    await appendOperatorEvents(tx, events);
    return events;
  });
}

const WARNING_TURN = 6_720_114;

/** Two keepers at once would both find that nobody has warned yet. */
async function alone(tx: DbOrTransaction): Promise<boolean> {
  const [row] = await tx.execute<{ mine: boolean }>(
    sql`select pg_try_advisory_xact_lock(${WARNING_TURN}::bigint) as mine`,
  );
  return row?.mine === true;
}
