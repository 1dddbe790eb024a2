import { ORDER_WAIT_SECONDS } from '../../domain/delivery-now';
import type { LatenessFacts, LateReason, Span } from '../../domain/lateness';
import type { Tenant } from '../../domain/tenant';
import type { NotificationSummary } from '../notifications/operator';
import { CUT_OFF_SINCE } from '../processes';
import { columns, msText as ms, oneRow, rowsOf, runPrepared, type Reader } from '../postgres/connect';

type Told = 'notificationId' | 'eventId' | 'eventType' | 'merchantReference' | 'state' | 'endReason';
export type ReportedEvent = LatenessFacts & Pick<NotificationSummary, keyof Tenant | Told>;

interface ReportFilter extends Partial<Tenant> {
  readonly notificationId?: string;
  /** Moments in ISO 8601; the end is exclusive. */
  readonly since: string;
  readonly until: string;
  readonly limit: number;
}

const BOUNDS = `
  select ${ms('service_now()')} as "nowMs", 'ntf_' || ulid_floor($1::text::timestamptz) as low,
    'ntf_' || ulid_floor($2::text::timestamptz) as high`;

// Past holds and pauses of a notification `n`, pauses of its partner, and all outages. The first table's index has the
// collation of the database, not that of ids.
const INTERRUPTED = `
  select kind as why, reason as what, began_at, ended_at from delivery_intervals i
    where i.notification_id = n.notification_id collate "default"
  union all select 'paused', paused_by, paused_at, resumed_at from delivery_pauses p
    where p.partner_id = n.partner_id and p.environment = n.environment
  union all select 'our_outage', kind, began_at, ended_at from outages
  union all select 'our_outage', 'network', c.since, null from (select ${CUT_OFF_SINCE} as since) c where c.since is not null`;

const COLUMNS = `notification_id, partner_id, environment, event_id, event_type, merchant_reference, state, end_reason,
  created_at, sent_again_at, delivered_at, ended_at`;

// Attempts, interruptions and the earlier event are looked up by keys for each event. The wait for the earlier
// event has no row of its own: it is read from that event, whose row is kept for longer than any attempt,
// and ends with this one's first attempt at the latest.
const EVENTS = `
  select ${columns('n', COLUMNS)},
    (select coalesce(json_agg(json_build_object('at', ${ms('a.started_at')}, 'outcome', a.outcome, 'failure', a.failure,
        'httpStatus', a.http_status) order by a.attempt_number), '[]')
      from delivery_attempts a where a.notification_id = n.notification_id and a.notification_id >= $1) as attempts,
    (select coalesce(json_agg(json_build_object('why', i.why, 'what', i.what, 'from', ${ms('i.began_at')}, 'to', ${ms('i.ended_at')})
        order by i.began_at), '[]')
      from (
        ${INTERRUPTED}
        union all select 'held', n.end_reason, n.held_at, null where n.held_at is not null
        union all select 'paused', n.paused_by, n.paused_at, null where n.paused_at is not null) i
      where coalesce(i.ended_at, 'infinity') > n.created_at) as interruptions,
    (select json_build_object('notificationId', e.notification_id, 'from', ${ms('e.created_at')}, 'to', least(
        ${ms('coalesce(e.delivered_at, e.ended_at)')},
        (select ${ms(`min(a.started_at) + interval '${ORDER_WAIT_SECONDS} s'`)} from delivery_attempts a where a.notification_id = e.notification_id)))
      from notifications e
      where e.environment = n.environment and e.partner_id = n.partner_id and e.application_id = n.application_id
        and e.sequence = n.sequence - 1 and e.notification_id < n.notification_id
        and e.notification_id >= 'ntf_' || ulid_floor(n.created_at - interval '400 days') limit 1) as earlier
  from notifications_now n
  where n.notification_id >= $1 and n.notification_id < $2 and n.application_id is not null
    and ($3::text is null or n.partner_id = $3) and ($4::text is null or n.environment = $4)
    and ($5::text is null or n.notification_id = $5)
  order by n.notification_id limit $6::int`;

type Stored<S extends Span> = Omit<S, 'from' | 'to'> & { readonly from: number; readonly to: number | null };
type Row = Omit<ReportedEvent, 'attempts' | 'interruptions' | 'earlier' | 'now'> & {
  readonly attempts: readonly (Omit<LatenessFacts['attempts'][number], 'at'> & { readonly at: number })[];
  readonly interruptions: readonly Stored<LateReason>[];
  readonly earlier: Stored<NonNullable<LatenessFacts['earlier']>> | null;
};

const spanOf = <S extends { readonly from: number; readonly to: number | null }>(one: S) => ({
  ...one,
  from: new Date(one.from),
  to: one.to === null ? null : new Date(one.to),
});

/** Events created in a span, oldest first, with the facts about why each was late. Tests are left out. */
export async function reportEvents(reader: Reader, filter: ReportFilter): Promise<ReportedEvent[]> {
  const { partnerId = null, environment = null, notificationId = null, since, until, limit } = filter;
  type Bounds = Readonly<Record<'low' | 'high', string>> & { readonly nowMs: number };
  const { nowMs, low, high } = await oneRow<Bounds>(reader, BOUNDS, [since, until]);
  const parameters = [low, high, partnerId, environment, notificationId, limit];
  return (await rowsOf<Row>(reader, EVENTS, parameters)).map((one) => ({
    ...one,
    attempts: one.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
    interruptions: one.interruptions.map(spanOf),
    earlier: one.earlier && spanOf(one.earlier),
    now: new Date(nowMs),
  }));
}

const INTERRUPTIONS = `
  select n.notification_id as "notificationId", i.why, i.what, ${ms('i.began_at')} as from, ${ms('i.ended_at')} as to
  from notifications n cross join lateral (${INTERRUPTED}) i
  where n.notification_id = any($1::text[]) and n.notification_id between $2 and $3
    and i.ended_at > coalesce(n.sent_again_at, n.created_at)
  order by i.began_at`;

/** Holds, pauses and outages, now over, since each was created or ordered to be sent again. */
export async function listInterruptions(reader: Reader, notificationIds: readonly string[]) {
  if (notificationIds.length === 0) return [];
  const ids = notificationIds.toSorted();
  type Row = Stored<LateReason> & { readonly notificationId: string };
  const rows = await runPrepared<Row>(reader, INTERRUPTIONS, [ids, ids.at(0) ?? '', ids.at(-1) ?? '']);
  return rows.map(spanOf);
}
