import { deliveryNow, ORDER_WAIT_SECONDS, SENDS_PER_ENDPOINT } from '../../domain/delivery-now';
import type { DeliveryFacts, DeliveryNow } from '../../domain/delivery-now';
import { DELIVERY_STATES, isOpen, type NotificationState } from '../../domain/notification-states';
import type { Tenant } from '../../domain/tenant';
import { CUT_OFF_SINCE } from '../processes';
import { columns, firstRow, msText as ms, oneRow, rowsOf } from '../postgres/connect';
import type { Parameter, Reader } from '../postgres/connect';
import type { deliveryAttempts } from '../schema';
import type { Within } from '../schema/columns';
import { NOTIFICATION, type Notification } from './notification';

/** A notification as operators see it. */
export interface NotificationSummary extends Omit<Notification, 'deliveredMs' | 'hasBody'>, Moments {
  readonly merchantReference: string | null;
  readonly createdAt: Date;
  readonly reservedMonth: string | null;
  readonly requestId: string | null;
}

type Moments = Readonly<
  Record<
    'dueAt' | 'takenAt' | 'startedAt' | 'nextAttemptAt' | 'pausedAt' | 'heldAt' | 'deliveredAt' | 'endedAt',
    Date | null
  >
>;

export interface StoredNotification extends NotificationSummary {
  readonly body: string;
}

/**
 * `lastOutcome`: of its last finished attempt, such as `http_status 503`, `connect`, `unknown`; null
 * without one.
 */
export type ListedNotification = NotificationSummary & { readonly lastOutcome: string | null };

export type DeliveryAttempt = typeof deliveryAttempts.$inferSelect;
export type AttemptSummary = Omit<DeliveryAttempt, 'answer'>;

const MOMENTS = `created_at, due_at, taken_at, started_at, next_attempt_at, paused_at, held_at, delivered_at, ended_at`;
const SUMMARY = `${NOTIFICATION}, ${columns('n', `merchant_reference, request_id, ${MOMENTS}`)},
  n.reserved_month::text as "reservedMonth"`;

/** Reads one notification; null when there is none, or its month has been dropped. */
export function findNotification(reader: Reader, notificationId: string) {
  const text = `select ${SUMMARY}, n.body from notifications_now n where n.notification_id = $1`;
  return firstRow<StoredNotification>(reader, text, [notificationId]);
}

export interface NotificationFilter extends Within, Partial<Tenant> {
  readonly states?: readonly NotificationState[];
  /** Neither delivered nor cancelled. */
  readonly undelivered: boolean;
  readonly paused: boolean;
  /** At least this time from the creation to the delivery, to another end, or until now. */
  readonly lateSeconds?: number;
  readonly applicationId?: string;
  /** The partner's own reference. */
  readonly merchantReference?: string;
  /** Only notifications older than this one. */
  readonly after?: string;
  readonly limit: number;
}

/** Notifications are read back to front by their ids, so the span bounds the work. */
export const LONGEST_SPAN_DAYS = 400;

const ENVIRONMENTS: readonly Tenant['environment'][] = ['sandbox', 'live'];

/** Notifications, newest first. */
export async function listNotifications(reader: Reader, filter: NotificationFilter) {
  const { oldest, newest, owner } = await rangeOf(reader, filter);
  const wanted = { ...filter, ...owner };
  // The indexes of a partner's notifications begin with the environment, so each has a list of its own.
  const environments =
    wanted.partnerId === undefined || wanted.environment !== undefined ? [wanted.environment] : ENVIRONMENTS;
  const lists = [];
  for (const environment of environments)
    lists.push(await listOf(reader, { ...wanted, environment }, oldest, newest));
  const newestFirst = (one: ListedNotification, other: ListedNotification) =>
    one.notificationId < other.notificationId ? 1 : -1;
  return lists.flat().toSorted(newestFirst).slice(0, filter.limit);
}

const OF_REFERENCE = 'select application_id from credit_applications where merchant_reference';

async function listOf(reader: Reader, filter: NotificationFilter, oldest: string, newest: string | null) {
  const { states, paused } = filter;
  const parameters: Parameter[] = [oldest, filter.limit];
  const given = (value: string | readonly string[] | undefined, condition: (nth: string) => string) =>
    value === undefined ? [] : [condition(`$${parameters.push(value)}`)];
  const underWay = paused || states?.every((state) => (DELIVERY_STATES as readonly string[]).includes(state));
  const conditions = [
    'n.notification_id >= $1',
    ...given(newest ?? undefined, (nth) => `n.notification_id < ${nth}`),
    ...given(filter.partnerId, (nth) => `n.partner_id = ${nth}`),
    ...given(filter.environment, (nth) => `n.environment = ${nth}`),
    ...given(states, (nth) => `n.state = any(${nth}::text[])`),
    ...given(
      filter.lateSeconds?.toString(),
      (nth) =>
        `coalesce(n.delivered_at, n.ended_at, service_now()) - n.created_at >= make_interval(secs => ${nth}::float8)`,
    ),
    ...given(filter.after, (nth) => `n.notification_id < ${nth}`),
    ...given(filter.applicationId, (nth) => `n.application_id = ${nth}`),
    ...given(filter.merchantReference, (nth) => `n.application_id in (${OF_REFERENCE} = ${nth})`),
    ...(underWay ? ['n.notification_id in (select notification_id from deliveries)'] : []),
    ...(paused ? ['n.paused_at is not null'] : []),
    ...(filter.undelivered ? [`n.delivered_at is null and n.state <> 'cancelled'`] : []),
  ];
  const text = `
    select ${SUMMARY}, (
      select case a.outcome when 'failed' then concat_ws(' ', a.failure, a.http_status) else a.outcome end
      from delivery_attempts a
      where a.notification_id = n.notification_id and a.notification_id >= $1 and a.finished_at is not null
      order by a.attempt_number desc limit 1) as "lastOutcome"
    from notifications_now n where ${conditions.join(' and ')}
    order by n.notification_id desc limit $2::int`;
  return rowsOf<ListedNotification>(reader, text, parameters);
}

const RANGE = `
  select 'ntf_' || ulid_floor(greatest($1::text::timestamptz, a.created_at - interval '1 day')) as oldest,
    'ntf_' || ulid_floor($2::text::timestamptz) as newest, a.partner_id as "partnerId", a.environment
  from (select $3::text as id) wanted left join credit_applications a on a.application_id = wanted.id`;

// Returns the bounds of the ids that a list may contain, as values, so that the planner excludes older
// months; and the owner of the application, with which the index of its notifications begins.
async function rangeOf(
  reader: Reader,
  { since, until, applicationId, partnerId, environment }: NotificationFilter,
) {
  type Range = Pick<Tenant, 'environment'> & Readonly<Record<'partnerId' | 'newest', string | null>>;
  const wanted = [since, until ?? null, applicationId ?? null];
  const { oldest, newest, ...owner } = await oneRow<Range & { oldest: string }>(reader, RANGE, wanted);
  const known = owner.partnerId !== null && partnerId === undefined && environment === undefined;
  return { oldest, newest, owner: known ? (owner as Tenant) : {} };
}

/** Columns of an attempt `n`, for an AttemptSummary. */
export const ATTEMPT = columns(
  'n',
  `notification_id, attempt_number, generation, endpoint_id, started_at, finished_at, outcome, failure, http_status,
    duration_ms, retry_after_ms, address`,
);

const ATTEMPTS = `select ${ATTEMPT}, n.answer from delivery_attempts n where n.notification_id = $1 order by n.attempt_number`;

export const listAttempts = (reader: Reader, notificationId: string) =>
  rowsOf<DeliveryAttempt>(reader, ATTEMPTS, [notificationId]);

// What the claim asks (claim.sql), and the attempt under way.
const FACTS = `
  select d.notification_id as id, ${ms('service_now()')} as "nowMs", ${ms('a.started_at')} as "attemptBeganAt",
    d.state = 'queued' and q.free <= 0 as "slotsFull", q.active as "endpointActive",
    d.state = 'queued' and q.tests_wait and d.test as "testsFull",
    -- Starts fail when some were given back within the last seconds.
    d.state = 'queued' and exists (
      select from deliveries t
      where t.state = 'queued' and t.partner_id = d.partner_id and t.environment = d.environment and t.priority in (0, 1)
        and t.due_at > service_now() - interval '15 s' and t.due_at < service_now() + interval '15 s'
        and t.checked_at > service_now() - interval '15 s') as "startsFail",
    d.state = 'queued' and d.checked_at is not null as "givenBack",
    case when d.state = 'queued' then (
      select e.notification_id from earlier_events_1(d.application_id, d.sequence, d.priority,
        make_interval(secs => ${ORDER_WAIT_SECONDS}), service_now()) e order by e.sequence limit 1) end as earlier,
    -- The last attempt was no failure of the partner, or none was made as others try the endpoint.
    case when d.state = 'started' and coalesce((
      select a.outcome = 'ours' from delivery_attempts a
      where a.notification_id = d.notification_id and a.generation = d.generation
      order by a.attempt_number desc limit 1), true) then ${ms(CUT_OFF_SINCE)} end as "cutOffSince",
    d.paused_by as "pausedBy",
    case when p.partner_id is not null then json_build_object('since', ${ms('p.paused_at')}, 'by', p.paused_by) end as "partnerPaused"
  from deliveries d
  left join delivery_pauses p on p.partner_id = d.partner_id and p.environment = d.environment and p.resumed_at is null
  cross join lateral delivery_queue_1(d.partner_id, d.environment, ${SENDS_PER_ENDPOINT}, service_now()) q
  left join lateral (
    select started_at from delivery_attempts a
    where d.state = 'started' and a.notification_id = d.notification_id and a.generation = d.generation
      and a.finished_at is null
    order by a.attempt_number desc limit 1) a on true
  where d.notification_id = any($1::text[])`;

type Facts = Omit<DeliveryFacts, keyof NotificationSummary | 'partnerPaused' | 'now'> & {
  readonly id: string;
  readonly nowMs: number;
  readonly partnerPaused: { readonly since: number; readonly by: string } | null;
};

const NO = {
  slotsFull: false,
  testsFull: false,
  startsFail: false,
  givenBack: false,
  endpointActive: true,
} as const;
const NOTHING = {
  ...NO,
  attemptBeganAt: null,
  cutOffSince: null,
  earlier: null,
  pausedBy: null,
  partnerPaused: null,
};

/** Returns what each of these does now. Rows that have ended or are held say so themselves. */
export async function whatTheyDo(
  reader: Reader,
  found: readonly NotificationSummary[],
): Promise<(one: NotificationSummary) => DeliveryNow> {
  const open = found.filter(({ state }) => isOpen(state)).map(({ notificationId }) => notificationId);
  const rows = open.length === 0 ? [] : await rowsOf<Facts>(reader, FACTS, [open]);
  const known = new Map(rows.map((row) => [row.id, row]));
  return (one) => {
    const read = known.get(one.notificationId) ?? { ...NOTHING, nowMs: Date.now() };
    const { nowMs, partnerPaused: paused, ...facts } = read;
    const partnerPaused = paused && { ...paused, since: new Date(paused.since) };
    return deliveryNow({ ...one, ...facts, partnerPaused, now: new Date(nowMs) });
  };
}

/** How many deliveries do one thing now. */
export interface DoingCount extends Partial<Tenant> {
  readonly doing: DeliveryNow['doing'];
  /** Why they are held, else null. */
  readonly reason: string | null;
  count: number;
  readonly partners: Set<string>;
  /** The one that was created first. */
  oldest: NotificationSummary;
  /** The last answers, with the number of deliveries that got each. */
  readonly answers: Map<string, number>;
}

/** Rows that are read at a time, which takes some tens of milliseconds. */
const SUMMED_AT_A_TIME = 1_000;

/** Counts deliveries under way by what they do now. It reads all of them: some seconds for 100,000. */
export async function countWhatTheyDo(
  reader: Reader,
  of: Pick<NotificationFilter, 'partnerId' | 'environment'>,
): Promise<DoingCount[]> {
  const counts = new Map<string, DoingCount>();
  // Nothing is under way for so long, whatever this machine's clock says.
  const since = new Date(Date.now() - LONGEST_SPAN_DAYS * 86_400_000).toISOString();
  const filter = { ...of, since, states: DELIVERY_STATES, undelivered: false, paused: false };
  for (let after: string | undefined; ;) {
    const found = await listNotifications(reader, { ...filter, after, limit: SUMMED_AT_A_TIME });
    const doing = await whatTheyDo(reader, found);
    for (const one of found) {
      const now = doing(one);
      const reason = now.doing === 'held' ? now.reason : null;
      const environment = of.partnerId === undefined ? undefined : one.environment;
      const key = `${environment}/${now.doing}/${reason}`;
      const row = counts.get(key) ?? {
        ...(environment && { environment }),
        doing: now.doing,
        reason,
        count: 0,
        partners: new Set(),
        oldest: one,
        answers: new Map(),
      };
      counts.set(key, row);
      row.count += 1;
      row.partners.add(one.partnerId);
      // They come newest first, so the last one seen is the oldest.
      row.oldest = one;
      if (one.lastOutcome !== null)
        row.answers.set(one.lastOutcome, (row.answers.get(one.lastOutcome) ?? 0) + 1);
    }
    after = found.at(-1)?.notificationId;
    if (found.length < SUMMED_AT_A_TIME) break;
  }
  return [...counts.values()].toSorted((one, other) => other.count - one.count);
}
