import type { Sql } from '../postgres/connect';
import { SUCCESS_IS_NEWS_TEXT } from '../endpoints/health';
import { hint } from '../postgres/hints';
import { runPrepared } from '../postgres/prepared';
import { testHasMoved } from './channels';
import { updateText } from './update';
import type { AttemptRef } from './record-attempt';

/**
 * `recordAttempt` for the common case, in one statement: a 2xx of the generation under way, whose notification has never
 * been delivered nor counted as failed, from an endpoint whose health it does not change. An event of an application
 * that was retried is left to `recordAttempt`: later events may have been put off, and are due now. A test gives its
 * unit of the quota up for the count.
 */
const RECORD = `
  with n as (
    select notification_id, partner_id, environment, event_type, generation, reserved_month
    from notifications
    where notification_id = $1 and state in ('pending', 'started') and delivered_at is null
      and failed_month is null and (application_id is null or attempts = 1)
    for update),
  attempt as (
    update delivery_attempts a
    set finished_at = service_now(), outcome = 'delivered', http_status = $3, duration_ms = $4, address = $5
    from n, webhook_endpoints e
    where a.notification_id = $1 and a.attempt_number = $2 and a.finished_at is null
      and a.generation = n.generation and e.endpoint_id = a.endpoint_id and not ${SUCCESS_IS_NEWS_TEXT}
      and (n.reserved_month is null
        or n.reserved_month = date_trunc('month', a.started_at at time zone 'UTC')::date)
    returning date_trunc('month', a.started_at at time zone 'UTC')::date as month),
  ended as (
    ${updateText('deliver', {})}
    from attempt where t.notification_id = $1),
  counted as (
    insert into monthly_counts as c
      (partner_id, environment, month, event_type, delivered, failed, reserved)
    select partner_id, environment, month, event_type, 1, 0, (reserved_month is not null)::int from n, attempt
    on conflict (partner_id, environment, month, event_type)
    do update set delivered = c.delivered + 1, reserved = c.reserved - excluded.reserved)
  select n.reserved_month is not null as "isTest" from n, attempt`;

/**
 * Finishes a delivery: its attempt's row, the notification, the count.
 * @returns false, with nothing changed, in every case that wants `recordAttempt` with its locks and looks.
 */
export async function recordDelivered(
  sql: Sql,
  { notificationId, attemptNumber }: AttemptRef,
  result: { readonly httpStatus: number; readonly durationMs: number; readonly address: string | null },
): Promise<boolean> {
  const { httpStatus, durationMs, address } = result;
  const [recorded] = await runPrepared<{ isTest: boolean }>(sql, RECORD, [
    notificationId,
    attemptNumber,
    httpStatus,
    durationMs,
    address,
  ]);
  if (recorded?.isTest === true) hint(sql, testHasMoved(notificationId));
  return recorded !== undefined;
}
