import { WARN_AFTER_HOURS } from '../../domain/delivery-outcome';
import { EXPIRY_WARNING_DAYS, HELD_FOR_DAYS } from '../notifications/hold';
import { msText, runPrepared, type Reader } from '../postgres/prepared';
import type { WebhookEndpoint } from './endpoints';

/** Endpoints and held notifications as metrics show them. */
export interface HealthFigures {
  readonly held: number;
  /** Milliseconds since the oldest of them was held; 0 when there is none. */
  readonly oldestHeldMs: number;
  /** Those that expire within seven days. */
  readonly expiring: number;
  readonly disabled: Readonly<Record<'operator' | 'gone' | 'failing', number>>;
  /** Those that the service itself disabled, the latest `GIVEN_UP_SHOWN` at most. */
  readonly givenUp: readonly { readonly endpoint: string; readonly reason: 'gone' | 'failing' }[];
  /** Active endpoints without a success for at least so many hours of failing. */
  readonly failing: readonly { readonly hours: number; readonly count: number }[];
  /** Partners whose live endpoint has answered nothing but failures for an hour, and whose events of applications are being retried. */
  readonly partnersFailing: number;
}

/** Each is a series of a metric: more than this at a time are not endpoints that fail, and the figures by reason show it. */
const GIVEN_UP_SHOWN = 50;
const SOON_DAYS = HELD_FOR_DAYS - EXPIRY_WARNING_DAYS;
const FAILING_HOURS = [0, ...WARN_AFTER_HOURS];
const HEALTH = `
  select h.*, e.*, g.*, p.* from (
    select count(*)::int as held,
      coalesce(extract(epoch from service_now() - min(held_at)) * 1000, 0)::float8 as "oldestHeldMs",
      (count(*) filter (where held_at <= service_now() - make_interval(days => ${SOON_DAYS})))::int as expiring
    from deliveries where state = 'held') h,
  (
    select json_build_object(
        'operator', count(*) filter (where state = 'disabled' and disabled_reason = 'operator'),
        'gone', count(*) filter (where state = 'disabled' and disabled_reason = 'gone'),
        'failing', count(*) filter (where state = 'disabled' and disabled_reason = 'failing')) as disabled,
      json_build_array(${FAILING_HOURS.map(
        (hours) => `count(*) filter (
          where state = 'active' and failing_since <= service_now() - make_interval(hours => ${hours}))`,
      ).join(', ')}) as counts
    from webhook_endpoints) e,
  (
    select coalesce(json_agg(one), '[]') as "givenUp" from (
      select endpoint_id as endpoint, disabled_reason as reason from webhook_endpoints
      where state = 'disabled' and disabled_reason in ('gone', 'failing')
      order by updated_at desc limit ${GIVEN_UP_SHOWN}) one) g,
  (
    select count(*)::int as "partnersFailing" from webhook_endpoints w
    where environment = 'live' and state = 'active' and failing_since <= service_now() - interval '1 hour'
      and exists (
        select from deliveries d
        where d.partner_id = w.partner_id and d.environment = w.environment
          and d.application_id is not null and d.next_attempt_at is not null)) p`;

export async function healthFigures(reader: Reader): Promise<HealthFigures> {
  type Row = Omit<HealthFigures, 'failing'> & { readonly counts: readonly number[] };
  const [row] = await runPrepared<Row>(reader, HEALTH);
  if (row === undefined) throw new Error('the figures of endpoints came back empty');
  const { counts, ...figures } = row;
  return { ...figures, failing: FAILING_HOURS.map((hours, at) => ({ hours, count: counts[at] ?? 0 })) };
}

/** What has not been delivered yet, and since when the oldest of it waits. */
export interface Queued {
  readonly count: number;
  /** Of the notifications' creation, first attempt, pause or hold; null when there are none. */
  readonly since: Date | null;
}

/** What waits for a partner and environment. `pending` has no attempt that has failed, `retrying` has; what is paused is in neither. */
export type QueueFigures = Readonly<Record<'pending' | 'retrying' | 'paused' | 'held', Queued>>;

/** An endpoint, and what waits for its partner and environment. */
export type EndpointWithQueue = WebhookEndpoint & { readonly queue: QueueFigures };

const NOTHING: Queued = { count: 0, since: null };
const EMPTY: QueueFigures = { pending: NOTHING, retrying: NOTHING, paused: NOTHING, held: NOTHING };

/** Adds what waits. For an endpoint that was removed nothing does: that waits for the one in its place. */
export async function withQueue(
  reader: Reader,
  endpoints: readonly WebhookEndpoint[],
): Promise<EndpointWithQueue[]> {
  const partners = [...new Set(endpoints.map(({ partnerId }) => partnerId))];
  const rows = await runPrepared<{
    partnerId: string;
    environment: string;
    what: keyof QueueFigures;
    count: number;
    sinceMs: number;
  }>(reader, QUEUES, [partners]);
  return endpoints.map((one) => {
    if (one.state === 'removed') return { ...one, queue: EMPTY };
    const mine = rows.filter((row) => row.partnerId === one.partnerId && row.environment === one.environment);
    const figures = mine.map(
      ({ what, count, sinceMs }) => [what, { count, since: new Date(sinceMs) }] as const,
    );
    return { ...one, queue: { ...EMPTY, ...Object.fromEntries(figures) } };
  });
}

const QUEUES = `
  select partner_id as "partnerId", environment, what, count(*)::int as count, ${msText('min(since)')} as "sinceMs"
  from (
    select d.partner_id, d.environment,
      case when d.state = 'held' then 'held' when d.paused_at is not null then 'paused' when d.step > 0 then 'retrying' else 'pending' end
        as what,
      coalesce(d.held_at, d.paused_at, case when d.step > 0 then d.first_attempt_at end, n.created_at) as since
    from deliveries d join notifications n using (notification_id) where d.partner_id = any($1::text[])) q
  group by 1, 2, 3`;
