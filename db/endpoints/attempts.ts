import type { Tenant } from '../../domain/tenant';
import type { Queue } from '../notifications/claim';
import { tenantOf } from '../notifications/notification';
import { ATTEMPT, type AttemptSummary } from '../notifications/operator';
import { msText, rowsOf, runPrepared, type DbOrTransaction, type Reader } from '../postgres/connect';
import { deliveryStatus, endedStatus } from '../schema';
import type { WebhookEndpoint } from './endpoints';

/** Attempts are found through this many of the newest notifications of each kind. */
const NOTIFICATIONS_LOOKED_AT = 100;

/** More attempts than can be under way to one endpoint in all workers. */
const SENDS_LOOKED_AT = 100;

const OWN = 'partner_id = $1 and environment = $2';
const newest = (table: string, status: string, value: string) => `(
    select notification_id from ${table} where ${OWN} and (${status}) = '${value}'
    order by notification_id desc limit ${NOTIFICATIONS_LOOKED_AT})`;
const ENDED = '(select * from notifications where end_state is not null) n';

// Reads notifications that may have had an attempt lately: those with one of the endpoint's slots, and
// the newest that are retried, held or ended. Each part is a range of an index, so that a long queue
// costs nothing.
const LAST = `
  select ${ATTEMPT} from delivery_attempts n
  where n.endpoint_id = $3 and n.notification_id in (
    select notification_id from deliveries where ${OWN} and taken_at is not null
    union ${newest('deliveries', deliveryStatus(), 'retrying')}
    union ${newest('deliveries', deliveryStatus(), 'held')}
    union ${newest(ENDED, endedStatus(), 'delivered')}
    union ${newest(ENDED, endedStatus(), 'failed')})
  order by n.finished_at is null desc, n.started_at desc, n.attempt_number desc limit $4::int`;

export async function lastAttempts(db: DbOrTransaction, of: WebhookEndpoint, most: number) {
  const parameters = [of.partnerId, of.environment, of.endpointId, SENDS_LOOKED_AT + most];
  const found = await rowsOf<AttemptSummary>(db, LAST, parameters);
  return {
    underWay: found.filter(({ finishedAt }) => finishedAt === null),
    ended: found.filter(({ finishedAt }) => finishedAt !== null).slice(0, most),
  };
}

export interface LastPace {
  readonly queue: Queue;
  readonly endpointId: string;
  /** Of the newest attempt that has ended; null: none has. */
  readonly outcome: AttemptSummary['outcome'];
  readonly durationMs: number | null;
}

// The newest of the notifications that were delivered, or wait for their next attempt.
const PACES = `
  select q.queue, e.endpoint_id as "endpointId", a.outcome, a.duration_ms as "durationMs"
  from unnest($1::text[], $2::text[], $3::text[]) as q (queue, partner_id, environment)
  join webhook_endpoints e on e.partner_id = q.partner_id and e.environment = q.environment and e.state = 'active'
  left join lateral (
    select a.outcome, a.duration_ms from (
      (select notification_id from notifications n
        where n.partner_id = q.partner_id and n.environment = q.environment and n.end_state is not null
          and (${endedStatus('n.')}) = 'delivered'
        order by notification_id desc limit 1)
      union all
      (select notification_id from deliveries d
        where d.partner_id = q.partner_id and d.environment = q.environment and (${deliveryStatus('d.')}) = 'retrying'
        order by notification_id desc limit 1)) newest
    join delivery_attempts a using (notification_id)
    where a.endpoint_id = e.endpoint_id and a.finished_at is not null
    order by a.started_at desc limit 1) a on true`;

/** How the newest attempts to the active endpoints of these queues went. */
export async function lastPaces(reader: Reader, queues: readonly Queue[]): Promise<readonly LastPace[]> {
  const tenants = queues.map(tenantOf);
  const names = [tenants.map(({ partnerId }) => partnerId), tenants.map(({ environment }) => environment)];
  return runPrepared<LastPace>(reader, PACES, [queues, ...names]);
}

interface Queued {
  readonly count: number;
  /** The oldest creation, first attempt, pause or hold; null when there are none. */
  readonly since: Date | null;
}

/** `pending`: no attempt has failed; `retrying`: one has. Paused ones are in neither. */
export type QueueFigures = Readonly<Record<'pending' | 'retrying' | 'paused' | 'held', Queued>>;

export type EndpointWithQueue = WebhookEndpoint & { readonly queue: QueueFigures };

const NOTHING: Queued = { count: 0, since: null };
const EMPTY: QueueFigures = { pending: NOTHING, retrying: NOTHING, paused: NOTHING, held: NOTHING };

const QUEUES = `
  select partner_id as "partnerId", environment, what, count(*)::int as count, ${msText('min(since)')} as "oldestAt"
  from (
    select d.partner_id, d.environment,
      case when d.state = 'held' then 'held' when d.paused_at is not null then 'paused' when d.step > 0 then 'retrying' else 'pending' end
        as what,
      coalesce(d.held_at, d.paused_at, case when d.step > 0 then d.first_attempt_at end, n.created_at) as since
    from deliveries d join notifications n using (notification_id) where d.partner_id = any($1::text[])) q
  group by 1, 2, 3`;

/** Adds the waiting notifications. A removed endpoint has none, as they wait for its successor. */
export async function withQueue(reader: Reader, endpoints: readonly WebhookEndpoint[]) {
  const partners = [...new Set(endpoints.map(({ partnerId }) => partnerId))];
  type Waiting = Tenant & Omit<Queued, 'since'> & { readonly what: string; readonly oldestAt: Date };
  const rows = await rowsOf<Waiting>(reader, QUEUES, [partners]);
  return endpoints.map((one) => {
    if (one.state === 'removed') return { ...one, queue: EMPTY };
    const mine = rows.filter((row) => row.partnerId === one.partnerId && row.environment === one.environment);
    const figures = mine.map(({ what, count, oldestAt: since }) => [what, { count, since }] as const);
    return { ...one, queue: { ...EMPTY, ...Object.fromEntries(figures) } };
  });
}
