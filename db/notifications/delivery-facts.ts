import { deliveryNow, SENDS_PER_ENDPOINT, type DeliveryNow } from '../../domain/delivery-now';
import { isOpen } from '../../domain/notification-states';
import type { DbOrTransaction } from '../postgres/connect';
import { msText, runPrepared } from '../postgres/prepared';
import { ORDER_WAIT_SECONDS } from './application-order';
import type { NotificationSummary } from './read';

/** Most tests of an endpoint under way or waiting for their next attempt, as in claim_notifications. */
const TESTS_PER_ENDPOINT = 4;

/** What the claim looks at (claim_notifications), and the attempt and the order that the row does not tell of. */
const FACTS = `
  with n as (
    select notification_id, generation, partner_id, environment, event_type, application_id, sequence, priority, state, paused_at
    from notifications where notification_id = any($1::text[])),
  queues as (
    select q.partner_id, q.environment,
      (select count(*) from (
        select from notifications t
        where t.partner_id = q.partner_id and t.environment = q.environment and t.taken_at is not null
          and t.state in ('pending', 'started') and (t.state = 'started' or t.due_at > service_now())
        limit ${SENDS_PER_ENDPOINT}) s) = ${SENDS_PER_ENDPOINT} as full,
      (select count(*) from (
        select from notifications t
        where t.event_type = 'credit_application.test' and t.state = 'started'
          and t.partner_id = q.partner_id and t.environment = q.environment limit ${TESTS_PER_ENDPOINT}) s) = ${TESTS_PER_ENDPOINT} as tests_full,
      -- Given back within the last seconds, it is due again a second later.
      exists (select from notifications t
        where t.state = 'pending' and t.partner_id = q.partner_id and t.environment = q.environment and t.priority in (0, 1)
          and t.due_at > service_now() - interval '15 s' and t.due_at < service_now() + interval '15 s'
          and t.checked_at > service_now() - interval '15 s') as starts_fail,
      exists (select from webhook_endpoints e
        where e.partner_id = q.partner_id and e.environment = q.environment and e.state = 'active') as active
    from (select distinct partner_id, environment from n where state = 'pending') q)
  select n.notification_id as id, ${msText('service_now()')} as "nowMs", ${msText('a.started_at')} as "attemptMs",
    coalesce(q.full, false) as "slotsFull", coalesce(q.active, false) as "endpointActive",
    coalesce(q.starts_fail, false) as "startsFail", coalesce(q.tests_full, false) and n.event_type = 'credit_application.test' as "testsFull",
    case when n.state = 'pending' and n.application_id is not null and n.sequence > 1 then (
      select b.notification_id from notifications b
      where b.application_id = n.application_id and b.sequence < n.sequence
        and (b.state in ('pending', 'started') or b.state = 'held' and q.active)
        and b.priority <= n.priority and b.delivered_at is null
        and (b.first_attempt_at is null or b.first_attempt_at > service_now() - make_interval(secs => ${ORDER_WAIT_SECONDS}))
      order by b.sequence limit 1) end as earlier,
    case when n.paused_at is not null then (
      select c.actor from change_log c where c.subject = n.notification_id and c.action = 'notifications.pause'
      order by c.change_id desc limit 1) end as "pausedBy"
  from n left join queues q using (partner_id, environment)
  left join lateral (
    select started_at from delivery_attempts a
    where n.state = 'started' and a.notification_id = n.notification_id and a.generation = n.generation
      and a.finished_at is null
    order by a.attempt_number desc limit 1) a on true`;

interface Row {
  readonly id: string;
  readonly nowMs: number;
  readonly attemptMs: number | null;
  readonly slotsFull: boolean;
  readonly endpointActive: boolean;
  readonly testsFull: boolean;
  readonly startsFail: boolean;
  readonly earlier: string | null;
  readonly pausedBy: string | null;
}

/** Says what each of these does now; of those that have ended, or are held, the row says it all. */
export async function whatTheyDo(
  db: DbOrTransaction,
  found: readonly NotificationSummary[],
): Promise<(one: NotificationSummary) => DeliveryNow> {
  const open = found.filter(({ state }) => isOpen(state)).map(({ notificationId }) => notificationId);
  const rows = open.length === 0 ? [] : await runPrepared<Row>(db, FACTS, [open]);
  const known = new Map(rows.map((row) => [row.id, row]));
  return (one) => {
    const row = known.get(one.notificationId);
    const { attemptMs = null, nowMs = Date.now() } = row ?? {};
    return deliveryNow({
      ...one,
      attemptBeganAt: attemptMs === null ? null : new Date(attemptMs),
      now: new Date(nowMs),
      slotsFull: row?.slotsFull ?? false,
      endpointActive: row?.endpointActive ?? true,
      testsFull: row?.testsFull ?? false,
      startsFail: row?.startsFail ?? false,
      earlier: row?.earlier ?? null,
      pausedBy: row?.pausedBy ?? null,
    });
  };
}
