import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { closeUnfinishedText } from './close-unfinished';
import { updateSql } from './update';
import type { KeyEnvironment } from '../keys/key';

/**
 * Why a notification is held, and why a test without an active endpoint fails: there is none, or why it is disabled. Partners see the
 * first of all of them (api/notifications/test-status.ts).
 */
export const noEndpointReason = (endpoint: { readonly disabledReason: string | null } | null) => {
  if (endpoint === null) return 'webhook_not_registered';
  const { disabledReason } = endpoint;
  return disabledReason === 'gone' || disabledReason === 'failing'
    ? (`endpoint_${disabledReason}` as const)
    : 'endpoint_disabled';
};

/** The same in SQL, for the partner and environment of `t`. */
export const noEndpointReasonText = (t: 'l' | 'n' | 't') => `coalesce(
  (select 'endpoint_' || case when e.disabled_reason in ('gone', 'failing') then e.disabled_reason else 'disabled' end
    from webhook_endpoints e
    where e.partner_id = ${t}.partner_id and e.environment = ${t}.environment and e.state = 'disabled'),
  'webhook_not_registered')`;

/** Whose notifications: there is at most one endpoint for each. */
export interface EndpointQueue {
  readonly partnerId: string;
  readonly environment: KeyEnvironment;
}

/** True in SQL when there is an active endpoint for the partner and environment of `t`. */
export const hasActiveEndpointText = (t: 'l' | 'n') => `exists (
  select 1 from webhook_endpoints e
  where e.partner_id = ${t}.partner_id and e.environment = ${t}.environment and e.state = 'active')`;
export const hasActiveEndpoint = (t: 'l' | 'n') => sql.raw(hasActiveEndpointText(t));

/**
 * `with recursive queues`: the queues that have notifications in this state. It leaps from queue to queue through the index, so
 * that a backlog of 100,000 for one partner costs no more than one notification.
 */
export const queuesWith = (state: 'pending' | 'held') => {
  const next = sql`from notifications n where n.state = ${sql.raw(`'${state}'`)}`;
  return sql`
    with recursive queues as (
      (select n.partner_id, n.environment ${next} order by n.partner_id, n.environment limit 1)
      union all
      select following.* from queues l cross join lateral (
        select n.partner_id, n.environment ${next}
          and (n.partner_id, n.environment) > (l.partner_id, l.environment)
        order by n.partner_id, n.environment limit 1) following)`;
};

/** Queues with pending notifications and no active endpoint. */
export async function queuesToHold(db: DbOrTransaction): Promise<EndpointQueue[]> {
  const rows = await db.execute(sql`${queuesWith('pending')}
    select l.partner_id as "partnerId", l.environment from queues l where not ${hasActiveEndpoint('l')}`);
  return [...rows] as unknown as EndpointQueue[];
}

/**
 * Holds pending notifications of a queue without an active endpoint, before a workflow is started for nothing. One whose
 * workflow is being started all the same finds out at its first step, and ends. Tests are left: they fail.
 * @returns how many; fewer than `limit` when there are no more, or others have them locked.
 */
export async function holdPending(
  db: DbOrTransaction,
  { partnerId, environment }: EndpointQueue,
  { limit }: { limit: number },
): Promise<number> {
  const rows = await db.execute(sql`
    with due as (
      select n.notification_id from notifications n
      where n.state = 'pending' and n.partner_id = ${partnerId} and n.environment = ${environment}
        and n.event_type <> ${TEST_EVENT_TYPE} and not ${hasActiveEndpoint('n')}
      order by n.priority, n.due_at limit ${limit} for update of n skip locked),
    closed as (
      ${sql.raw(closeUnfinishedText('due'))})
    ${updateSql('hold', { end_reason: sql.raw(noEndpointReasonText('t')) })}
    from due where t.notification_id = due.notification_id
    returning 1`);
  return rows.length;
}
