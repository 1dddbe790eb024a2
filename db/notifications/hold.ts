import type { Tenant } from '../../domain/tenant';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';
import { hasActiveEndpoint } from '../endpoints/endpoints';
import { columns, oneRow, rowsOf, runPrepared } from '../postgres/connect';
import { hint } from '../postgres/hints';
import type { Db, DbOrTransaction, Reader } from '../postgres/connect';
import type { deliveryPauses } from '../schema';
import { endNotification } from './attempt';
import { isDue, queueName, updateText, type NotificationRef } from './notification';

export const HELD_FOR_DAYS = 30;
export const EXPIRY_WARNING_DAYS = 7;
/** Shortest time between two warnings of a queue. */
const WARN_EVERY_HOURS = 24;

const queuesOf = (queues: string, endpoint: string) => `
  select partner_id as "partnerId", environment from ${queues} q where ${endpoint} order by 1, 2`;
const TO_HOLD = queuesOf(`queued_queues_1(${2 ** 31 - 1}, '', '')`, `not ${hasActiveEndpoint('q')}`);
const TO_RELEASE = queuesOf('held_queues_1()', hasActiveEndpoint('q'));

/** Queues with queued notifications and no active endpoint. */
export const queuesToHold = (reader: Reader) => runPrepared<Tenant>(reader, TO_HOLD);

/** Queues with held notifications and an active endpoint. */
export const queuesToRelease = (reader: Reader) => runPrepared<Tenant>(reader, TO_RELEASE);

const HOLD = `
  with due as (
    select d.notification_id from deliveries d
    where d.state = 'queued' and d.partner_id = $1 and d.environment = $2 and not d.test and not ${hasActiveEndpoint('d')}
    order by d.priority, d.due_at limit $3::int for update skip locked),
  closed as (
    update delivery_attempts a set finished_at = service_now(), outcome = 'unknown'
    from due where a.notification_id = due.notification_id and a.finished_at is null)
  ${updateText('hold', { hold_reason: 'no_endpoint_reason_1(d.partner_id, d.environment)' })}
  from due where d.notification_id = due.notification_id
  returning 1`;

/**
 * Holds queued notifications of a queue without an active endpoint, so that no workflow is started for
 * them. A workflow that is being started all the same ends at its first step. Tests fail instead.
 * @returns how many; fewer than `limit` when there are no more, or others have them locked
 */
export const holdQueued = async (reader: Reader, of: Tenant, { limit }: { limit: number }) =>
  (await runPrepared(reader, HOLD, [of.partnerId, of.environment, limit])).length;

const LOCK_ENDPOINT = `
  select 1 from webhook_endpoints where partner_id = $1 and environment = $2 and state = 'active' for no key update`;
const RELEASE = `
  with oldest as (
    select notification_id from deliveries
    where state = 'held' and partner_id = $1 and environment = $2
    order by notification_id limit $3::int for update skip locked),
  released as (
    select notification_id, row_number() over (order by notification_id) as position, service_now() as at from oldest)
  ${updateText('release', {
    // They are due a microsecond apart, in the order of their ids.
    due_at: `(select min(at) from released) + make_interval(secs => (released.position * 0.000001)::float8)`,
    priority: 'd.priority',
  })}
  from released where d.notification_id = released.notification_id
  returning 1`;

/**
 * Queues the oldest held notifications of a queue again, each under its next generation, due in their
 * order. The row of the endpoint is locked meanwhile, so that keepers take turns and a command that
 * disables the endpoint waits for the end of a batch.
 * @returns how many; fewer than `limit` when there are no more, or the endpoint is not active any more
 */
export async function releaseHeld(db: Db, of: Tenant, { limit }: { limit: number }): Promise<number> {
  return db.transaction(async (tx) => {
    if ((await runPrepared(tx, LOCK_ENDPOINT, [of.partnerId, of.environment])).length === 0) return 0;
    const rows = await runPrepared(tx, RELEASE, [of.partnerId, of.environment, limit]);
    if (rows.length > 0) hint(tx, isDue(of));
    return rows.length;
  });
}

const EXPIRED = `
  select d.notification_id as "notificationId", d.generation, d.partner_id as "partnerId", d.environment
  from deliveries d
  where d.state = 'held' and d.held_at <= service_now() - make_interval(days => ${HELD_FOR_DAYS}) and not ${hasActiveEndpoint('d')}
  order by d.partner_id, d.environment, d.notification_id limit $1::int`;

/**
 * Expires notifications that have been held for 30 days and still have no endpoint. They count as
 * failed in this month; one that is delivered later counts as delivered instead.
 * @returns the stored operator events, one for each queue
 */
export async function expireHeld(db: Db, { limit }: { limit: number }): Promise<OperatorEvent[]> {
  return db.transaction(async (tx) => {
    const queues = new Map<string, Tenant & { readonly ids: string[] }>();
    for (const one of await runPrepared<NotificationRef & Tenant>(tx, EXPIRED, [limit])) {
      const ended = await endNotification(tx, one, { state: 'expired', reason: 'held_too_long' });
      if (ended === null) continue;
      const { partnerId, environment } = one;
      const key = queueName(one);
      const queue = queues.get(key) ?? { partnerId, environment, ids: [] };
      queues.set(key, queue);
      queue.ids.push(one.notificationId);
    }
    const events = [...queues.values()].map(({ ids, ...queue }): OperatorEvent => {
      const details = { count: ids.length, first: ids.at(0), last: ids.at(-1) };
      return { kind: 'notifications_expired', ...queue, endpointId: null, details };
    });
    await appendOperatorEvents(tx, events);
    return events;
  });
}

/** Any fixed number. The lock keeps two keepers from warning at the same moment. */
const WARNING_LOCK = `select pg_try_advisory_xact_lock(6720114::bigint) as mine`;
const EXPIRING = `
  select d.partner_id as "partnerId", d.environment, count(*)::int as count,
    to_char((min(d.held_at) + make_interval(days => ${HELD_FOR_DAYS})) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as from
  from deliveries d
  where d.state = 'held' and d.held_at <= service_now() - make_interval(days => ${HELD_FOR_DAYS - EXPIRY_WARNING_DAYS})
    and not exists (
      select 1 from operator_events o
      where o.partner_id = d.partner_id and o.environment = d.environment and o.kind = 'notifications_expiring'
        and o.happened_at > service_now() - make_interval(hours => ${WARN_EVERY_HOURS}))
  group by 1, 2 order by 1, 2`;

/**
 * Warns of held notifications that expire within seven days, once a day for each queue.
 * @returns the stored operator events
 */
export async function warnOfExpiry(db: Db): Promise<OperatorEvent[]> {
  return db.transaction(async (tx) => {
    if (!(await oneRow<{ mine: boolean }>(tx, WARNING_LOCK)).mine) return [];
    type Due = Tenant & { readonly count: number; readonly from: string };
    const due = await runPrepared<Due>(tx, EXPIRING);
    const events = due.map(({ partnerId, environment, ...details }): OperatorEvent => {
      return { kind: 'notifications_expiring', partnerId, environment, endpointId: null, details };
    });
    await appendOperatorEvents(tx, events);
    return events;
  });
}

type StoredPause = Readonly<typeof deliveryPauses.$inferSelect>;
export type DeliveryPause = Pick<StoredPause, keyof Tenant | 'pausedAt' | 'pausedBy'>;

const OF_TENANT = `partner_id = $1 and environment = $2 and resumed_at is null`;
// open.sql takes the same lock shared, so that attempts that are being opened finish first.
const LOCK = `select pg_advisory_xact_lock(hashtext('delivery_pauses'), hashtext($1::text || '/' || $2::text))`;
const PAUSE = `
  insert into delivery_pauses (partner_id, environment, paused_by) values ($1, $2, $3) on conflict do nothing returning 1`;
const RESUME = `update delivery_pauses set resumed_at = service_now(), resumed_by = $3 where ${OF_TENANT} returning 1`;

/**
 * Pauses deliveries to a partner: no attempt begins after the commit.
 * @returns false when they were paused already
 */
export async function pauseDeliveries(tx: DbOrTransaction, of: Tenant, actor: string): Promise<boolean> {
  await runPrepared(tx, LOCK, [of.partnerId, of.environment]);
  return (await runPrepared(tx, PAUSE, [of.partnerId, of.environment, actor])).length > 0;
}

/**
 * Ends such a pause, and wakes the dispatchers.
 * @returns false when there was none
 */
export async function resumeDeliveries(tx: DbOrTransaction, of: Tenant, actor: string): Promise<boolean> {
  const resumed = await runPrepared(tx, RESUME, [of.partnerId, of.environment, actor]);
  if (resumed.length > 0) hint(tx, isDue(of));
  return resumed.length > 0;
}

const PAUSED = `
  select ${columns('p', 'partner_id, environment, paused_at, paused_by')} from delivery_pauses p
  where p.resumed_at is null and ($1::text is null or p.partner_id = $1) order by 1, 2`;

/** The present pauses of one partner or of all. */
export const listPauses = (reader: DbOrTransaction, partnerId: string | null = null) =>
  rowsOf<DeliveryPause>(reader, PAUSED, [partnerId]);

type UnderWayCounts = Readonly<Record<'waiting' | 'paused' | 'sending', number>>;

const COUNTS = `
  select count(*) filter (where not sending)::int as waiting, count(*) filter (where sending)::int as sending,
    count(*) filter (where not sending and paused_at is not null)::int as paused
  from (
    select d.paused_at, exists (
        select from delivery_attempts a
        where a.notification_id = d.notification_id and a.generation = d.generation and a.finished_at is null
          and d.state = 'started') as sending
    from deliveries d where d.partner_id = $1 and ($2::text is null or d.environment = $2) and d.state <> 'held') q`;

/**
 * Counts the partner's deliveries under way.
 * @param of.environment null: both
 * @returns `paused`: those of `waiting` that were paused one by one (`ops notifications pause`)
 */
export const countUnderWay = (
  reader: DbOrTransaction,
  of: { readonly partnerId: string; readonly environment: Tenant['environment'] | null },
) => oneRow<UnderWayCounts>(reader, COUNTS, [of.partnerId, of.environment]);
