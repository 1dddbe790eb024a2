import { SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import { runPrepared, type Reader } from '../postgres/prepared';
import { TEST_LIMIT_PER_MONTH } from './quota';

/** Shares of the monthly limit that metrics tell apart, in per cent. */
export const LIMIT_SHARES = [50, 80, 100] as const;

/** What is owed and what was sent, for all partners together, as metrics show it. */
export interface DeliveryFigures {
  /** Not delivered yet, by state. */
  readonly undelivered: Readonly<Record<'queued' | 'started' | 'held', number>>;
  /** Milliseconds since the oldest pause began; 0 when nothing is paused. */
  readonly oldestPausedMs: number;
  /** Of this UTC month. */
  readonly month: readonly {
    readonly environment: 'sandbox' | 'live';
    readonly delivered: number;
    readonly failed: number;
    /** Partners that have used at least so much of their test notifications, in the order of `LIMIT_SHARES`. */
    readonly limitUsed: readonly number[];
  }[];
}

const UNDELIVERED = `
  select (count(*) filter (where state = 'queued'))::int as queued, (count(*) filter (where state = 'started'))::int as started,
    (count(*) filter (where state = 'held'))::int as held,
    coalesce(extract(epoch from service_now() - min(paused_at)) * 1000, 0)::float8 as "oldestPausedMs"
  from deliveries`;

const MONTH = `
  select environment, coalesce(sum(delivered), 0)::int as delivered, coalesce(sum(failed), 0)::int as failed,
    json_build_array(${LIMIT_SHARES.map(
      (share) => `count(*) filter (
      where event_type = '${TEST_EVENT_TYPE}' and (delivered + reserved) * 100 >= ${share * TEST_LIMIT_PER_MONTH})`,
    ).join(', ')}) as "limitUsed"
  from unnest(array['sandbox', 'live']) environment
  left join (select * from monthly_counts where month = service_month()) c using (environment)
  group by environment`;

export async function deliveryFigures(reader: Reader): Promise<DeliveryFigures> {
  type UnderWay = DeliveryFigures['undelivered'] & Pick<DeliveryFigures, 'oldestPausedMs'>;
  const [underWay] = await runPrepared<UnderWay>(reader, UNDELIVERED);
  if (underWay === undefined) throw new Error('the figures of notifications came back empty');
  const { oldestPausedMs, ...undelivered } = underWay;
  const month = await runPrepared<DeliveryFigures['month'][number]>(reader, MONTH);
  return { undelivered, oldestPausedMs, month };
}

/** What waits for its workflow; ages in milliseconds, 0 when nothing waits. */
export interface Backlog {
  readonly pending: number;
  /** Of those whose endpoint has a free slot: one slow endpoint does not hide that nothing is started. */
  readonly oldestMs: number;
  /** Of it, what is due and whose endpoint has no slot. */
  readonly capped: number;
  readonly oldestCappedMs: number;
}

const BACKLOG = `
  with queued as (
    select partner_id, environment, count(*) as pending, min(notification_id) as oldest,
      count(*) filter (where due_at <= service_now()) as due, min(due_at) as due_since
    from deliveries where state = 'queued' group by 1, 2),
  of_queue as (
    select q.*, q.due > 0 and (
        select free <= 0 from delivery_queue_1(q.partner_id, q.environment, ${SENDS_PER_ENDPOINT}, service_now())) as capped,
      -- Started ones alone are first attempts under way; what is claimed and not started may wait for Temporal.
      ${SENDS_PER_ENDPOINT} = (select count(*) from (
        select from deliveries d
        where d.partner_id = q.partner_id and d.environment = q.environment and d.taken_at is not null and d.state = 'started'
        limit ${SENDS_PER_ENDPOINT}) s) as slow
    from queued q)
  select coalesce(sum(pending), 0)::int as pending, coalesce(sum(due) filter (where of_queue.capped), 0)::int as capped,
    coalesce(extract(epoch from service_now() - (
      select created_at from notifications where notification_id = min(oldest) filter (where not slow))) * 1000, 0)::float8
      as "oldestMs",
    coalesce(extract(epoch from service_now() - min(due_since) filter (where of_queue.capped)) * 1000, 0)::float8 as "oldestCappedMs"
  from of_queue`;

/** How much is waiting, and since when: for metrics. Reads the rows of what is under way. */
export async function backlog(reader: Reader): Promise<Backlog> {
  const [row] = await runPrepared<Backlog>(reader, BACKLOG);
  if (row === undefined) throw new Error('the figures of the backlog came back empty');
  return row;
}
