import { ORDER_WAIT_SECONDS } from '../../domain/delivery-now';
import type { LatenessFacts, LateReason, Span } from '../../domain/lateness';
import type { Tenant } from '../../domain/tenant';
import type { NotificationSummary } from '../notifications/operator';
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

/** Spans that concern many events: our outages, and pauses of partners. */
const SHARED = `
  select ${ms('service_now()')} as "nowMs", 'ntf_' || ulid_floor($1::text::timestamptz) as low, 'ntf_' || ulid_floor($2::text::timestamptz) as high,
    (select coalesce(json_agg(json_build_object('kind', kind, 'from', ${ms('began_at')}, 'to', ${ms('ended_at')}) order by began_at), '[]')
      from outages where ended_at > $1::text::timestamptz) as outages,
    (select coalesce(json_agg(json_build_object('partnerId', partner_id, 'environment', environment, 'by', paused_by,
        'from', ${ms('paused_at')}, 'to', ${ms('resumed_at')}) order by paused_at), '[]')
      from delivery_pauses where coalesce(resumed_at, 'infinity') > $1::text::timestamptz) as pauses`;

const COLUMNS = `notification_id, partner_id, environment, event_id, event_type, merchant_reference, state, end_reason,
  created_at, sent_again_at, delivered_at, ended_at`;

// Attempts, spans and the earlier event are looked up by keys for each event. The wait for the earlier
// event has no row of its own: it is read from that event, whose row is kept for longer than any attempt,
// and ends with this one's first attempt at the latest.
const EVENTS = `
  select ${columns('n', COLUMNS)},
    (select coalesce(json_agg(json_build_object('at', ${ms('a.started_at')}, 'outcome', a.outcome, 'failure', a.failure,
        'httpStatus', a.http_status) order by a.attempt_number), '[]')
      from delivery_attempts a where a.notification_id = n.notification_id and a.notification_id >= $1) as attempts,
    (select coalesce(json_agg(json_build_object('kind', i.kind, 'reason', i.reason, 'from', ${ms('i.began_at')}, 'to', ${ms('i.ended_at')},
        'by', i.reason) order by i.began_at), '[]')
      from (
        select * from delivery_intervals where notification_id = n.notification_id
        union all select n.notification_id, 'held', n.end_reason, n.held_at, null where n.held_at is not null
        union all select n.notification_id, 'paused', n.paused_by, n.paused_at, null where n.paused_at is not null) i) as spans,
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
type Row = Omit<ReportedEvent, 'attempts' | 'holds' | 'pauses' | 'outages' | 'earlier' | 'now'> & {
  readonly attempts: readonly (Omit<LatenessFacts['attempts'][number], 'at'> & { readonly at: number })[];
  readonly spans: readonly (Stored<LatenessFacts['holds'][number] & LatenessFacts['pauses'][number]> & {
    readonly kind: string;
  })[];
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
  type Pause = Tenant & LatenessFacts['pauses'][number];
  const shared = await oneRow<{
    readonly nowMs: number;
    readonly low: string;
    readonly high: string;
    readonly outages: readonly Stored<LatenessFacts['outages'][number]>[];
    readonly pauses: readonly Stored<Pause>[];
  }>(reader, SHARED, [since, until]);
  const parameters = [shared.low, shared.high, partnerId, environment, notificationId, limit];
  const rows = await rowsOf<Row>(reader, EVENTS, parameters);
  const outages = shared.outages.map(spanOf);
  return rows.map(({ attempts, spans, earlier, ...one }) => {
    const own = spans.map(spanOf);
    const ofPartner = shared.pauses.filter(
      (pause) => pause.partnerId === one.partnerId && pause.environment === one.environment,
    );
    return {
      ...one,
      attempts: attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
      holds: own.filter(({ kind }) => kind === 'held'),
      pauses: [...own.filter(({ kind }) => kind === 'paused'), ...ofPartner.map(spanOf)],
      outages,
      earlier: earlier && spanOf(earlier),
      now: new Date(shared.nowMs),
    };
  });
}

const INTERRUPTIONS = `
  select n.notification_id as "notificationId", i.why, i.what, ${ms('i.began_at')} as from, ${ms('i.ended_at')} as to
  from notifications n cross join lateral (
    select kind as why, reason as what, began_at, ended_at from delivery_intervals where notification_id = n.notification_id
    union all select 'paused', paused_by, paused_at, resumed_at from delivery_pauses p
      where p.partner_id = n.partner_id and p.environment = n.environment
    union all select 'our_outage', kind, began_at, ended_at from outages) i
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
