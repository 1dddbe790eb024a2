import { SENDS_PER_ENDPOINT } from '../domain/delivery-now';
import { WARN_AFTER_HOURS } from '../domain/delivery-outcome';
import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { contradictionsOfDay } from './audit/operator-events';
import { LOST_AT } from './notifications/claim';
import { EXPIRY_WARNING_DAYS, HELD_FOR_DAYS } from './notifications/hold';
import { createdMs } from './notifications/notification';
import { TEST_LIMIT_PER_MONTH } from './notifications/quota';
import { firstRow, msText, oneRow, runPrepared, type Db, type Reader } from './postgres/connect';
import { LOGIN_SETTING_COUNT } from './postgres/rights';

export const LIMIT_SHARES = [50, 80, 100] as const;

/** Notifications under way and the counts of the month, of all partners. */
interface DeliveryFigures {
  readonly undelivered: Readonly<Record<'queued' | 'started' | 'held', number>>;
  /** Started ones that no worker has looked for in Temporal since workflows were lost, and that it may have to start again. */
  readonly toRestart: number;
  /**
   * Milliseconds since the next step of a started delivery was due, the longest of all; 0 when none is due. One that
   * waits for a slot of its endpoint is due.
   */
  readonly overdueMs: number;
  /** Milliseconds since the oldest pause of a delivery or partner began; 0 when nothing is paused. */
  readonly oldestPausedMs: number;
  readonly queuesPaused: number;
  /**
   * Events of applications that have not been delivered a minute after they were created, whatever the
   * reason.
   */
  readonly late: number;
  readonly month: readonly {
    readonly environment: 'sandbox' | 'live';
    readonly delivered: number;
    readonly failed: number;
    /** Partners that have used this share of their tests, in the order of `LIMIT_SHARES`. */
    readonly limitUsed: readonly number[];
  }[];
}

const UNDELIVERED = `
  select json_build_object('queued', count(*) filter (where state = 'queued'),
      'started', count(*) filter (where state = 'started'), 'held', count(*) filter (where state = 'held')) as undelivered,
    (count(*) filter (where state = 'started' and coalesce(checked_at, started_at, '-infinity') < (${LOST_AT})))::int as "toRestart",
    greatest(coalesce(extract(epoch from service_now() - min(coalesce(next_attempt_at, started_at))
      filter (where state = 'started' and paused_at is null)) * 1000, 0), 0)::float8 as "overdueMs",
    coalesce(extract(epoch from service_now() - least(min(paused_at), (
      select min(p.paused_at) from delivery_pauses p where p.resumed_at is null))) * 1000, 0)::float8 as "oldestPausedMs",
    (select count(*) from delivery_pauses p where p.resumed_at is null)::int as "queuesPaused",
    (count(*) filter (where not test and not delivered
      and notification_id < (select 'ntf_' || ulid_floor(service_now() - interval '1 minute'))))::int as late
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
  const figures = await oneRow<Omit<DeliveryFigures, 'month'>>(reader, UNDELIVERED);
  return { ...figures, month: await runPrepared<DeliveryFigures['month'][number]>(reader, MONTH) };
}

/** Notifications that wait for their workflow. Ages are in milliseconds, 0 when none waits. */
interface Backlog {
  readonly pending: number;
  /** Only of unpaused queues with a free slot, so that one slow endpoint does not hide a general fault. */
  readonly oldestMs: number;
  readonly capped: number;
  readonly oldestCappedMs: number;
}

const BACKLOG = `
  with queued as (
    select partner_id, environment, count(*) as pending,
      -- A retry that was queued again, because it found no slot, may be days old.
      min(notification_id) filter (where first_attempt_at is null) as oldest,
      count(*) filter (where due_at <= service_now()) as due, min(due_at) as due_since
    from deliveries where state = 'queued' group by 1, 2),
  of_queue as (
    select q.*,
      -- Started rows only, because one that is only claimed may be waiting for Temporal.
      ${SENDS_PER_ENDPOINT} = (select count(*) from (
        select from deliveries d
        where d.partner_id = q.partner_id and d.environment = q.environment and d.taken_at is not null and d.state = 'started'
        limit ${SENDS_PER_ENDPOINT}) s) as slow,
      deliveries_paused_1(q.partner_id, q.environment) as paused
    from queued q)
  select coalesce(sum(pending), 0)::int as pending, coalesce(sum(due) filter (where slow), 0)::int as capped,
    min(oldest) filter (where not slow and not paused) as oldest, extract(epoch from service_now())::float8 * 1000 as now,
    coalesce(extract(epoch from service_now() - min(due_since) filter (where slow and due > 0)) * 1000, 0)::float8 as "oldestCappedMs"
  from of_queue`;

/** Reads all rows of `deliveries` and nothing else, as the id of a notification contains its creation. */
export async function backlog(reader: Reader): Promise<Backlog> {
  type Row = Omit<Backlog, 'oldestMs'> & { readonly oldest: string | null; readonly now: number };
  const { oldest, now, ...figures } = await oneRow<Row>(reader, BACKLOG);
  return { ...figures, oldestMs: oldest === null ? 0 : Math.max(0, now - createdMs(oldest)) };
}

interface HealthFigures {
  readonly held: number;
  /** Milliseconds since the oldest of them was held; 0 when there is none. */
  readonly oldestHeldMs: number;
  readonly expiring: number;
  readonly disabled: Readonly<Record<'operator' | 'gone' | 'failing', number>>;
  /** Those that the service itself disabled, at most the latest `GIVEN_UP_SHOWN`. */
  readonly givenUp: readonly { readonly endpoint: string; readonly reason: 'gone' | 'failing' }[];
  readonly failing: readonly { readonly hours: number; readonly count: number }[];
  /** Partners whose live endpoint has only failed for an hour while events of applications are retried. */
  readonly partnersFailing: number;
}

/** Each is a series of a metric. More at a time means that the fault is ours. */
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
  const { counts, ...figures } = await oneRow<Row>(reader, HEALTH);
  return { ...figures, failing: FAILING_HOURS.map((hours, at) => ({ hours, count: counts[at] ?? 0 })) };
}

interface WaitingFigures {
  readonly waiting: number;
  /** Seconds since the oldest of them was received; 0 when none waits. */
  readonly oldestSeconds: number;
  /** Seconds since the first wait was over that no worker has ended; 0 when there is none. */
  readonly overdueSeconds: number;
}

const WAITING = `
  select count(*)::int as waiting, coalesce(extract(epoch from service_now() - min(received_at)), 0)::float8 as "oldestSeconds",
    greatest(coalesce(extract(epoch from service_now() - min(waits_until)), 0), 0)::float8 as "overdueSeconds"
  from lender_events where waits_until is not null`;

export const waitingFigures = (reader: Reader) => oneRow<WaitingFigures>(reader, WAITING);

interface DatabaseFigures {
  /** Whole months ahead that every table has partitions for: 12, or 11 shortly after a month has begun. */
  readonly monthsAhead: number;
  /** Milliseconds since the write-ahead log was last archived while archiving fails; else 0. */
  readonly archiveFailingMs: number;
  /** Settings that logins of ours have made for themselves. */
  readonly loginSettings: number;
}

const DATABASE = `
  select (
      select min(ahead)::int from (
        select (
          select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = to_regclass(parent) and c.relname ~ '_[0-9]{4}_[0-9]{2}$'
            and right(c.relname, 7) > to_char(service_now() at time zone 'UTC', 'YYYY_MM')) as ahead
        from unnest(array['quotes', 'notifications', 'delivery_attempts']) parent) months) as "monthsAhead",
    case when last_failed_time > coalesce(last_archived_time, '-infinity')
      then extract(epoch from clock_timestamp() - coalesce(last_archived_time, stats_reset)) * 1000
      else 0 end::float8 as "archiveFailingMs",
    ${LOGIN_SETTING_COUNT} as "loginSettings"
  from pg_stat_archiver`;

export const databaseFigures = (reader: Reader) => oneRow<DatabaseFigures>(reader, DATABASE);

/** What is counted over all rows. */
export type Figures = Awaited<ReturnType<typeof countAll>>;
export type Counted = Pick<Figures, 'backlog' | 'deliveries'>;

async function countAll(reader: Reader) {
  return {
    backlog: await backlog(reader),
    deliveries: await deliveryFigures(reader),
    health: await healthFigures(reader),
    waiting: await waitingFigures(reader),
    contradictions: await contradictionsOfDay(reader),
    database: await databaseFigures(reader),
  };
}

/** Counts notifications under way. @returns null when a statement takes longer than so many milliseconds */
export const countWithin = (db: Db, withinMs: number): Promise<Counted | null> =>
  db
    .transaction(async (tx) => {
      await runPrepared(tx, `set local statement_timeout = ${withinMs}`);
      return { backlog: await backlog(tx), deliveries: await deliveryFigures(tx) };
    })
    .catch((error: unknown) => {
      if ((error as { code?: unknown }).code === QUERY_CANCELED) return null;
      throw error;
    });

const QUERY_CANCELED = '57014';

/** Any fixed number. Workers that want to count at the same moment leave it to one. */
const LOCK = `select pg_try_advisory_xact_lock(6720115::bigint) as mine`;
/** Far above what a hundred million rows take. */
const LIMIT = `set local statement_timeout = '60s'`;
/** Counts take at most this share of the time: beside a million rows, which take a second, two a minute. */
const SHARE = 1 / 25;
/** However long they take, the next one begins this long after the last, in milliseconds. */
const OLDEST_MS = 60_000;

const STORED = `
  select figures, took_ms as "tookMs", ${msText('service_now() - counted_at')} as "ageMs" from figures`;
const STORE = `
  insert into figures (counted_at, took_ms, figures) values (service_now(), $1::int, $2)
  on conflict (singleton) do update
    set counted_at = excluded.counted_at, took_ms = excluded.took_ms, figures = excluded.figures`;

interface Stored {
  readonly figures: string;
  readonly tookMs: number;
  readonly ageMs: number;
}

/** The figures as a worker stored them last, and how long ago that was; null when none has. */
export async function storedFigures(reader: Reader): Promise<{ figures: Figures; ageMs: number } | null> {
  const row = await firstRow<Stored>(reader, STORED, []);
  return row && { figures: JSON.parse(row.figures) as Figures, ageMs: row.ageMs };
}

/**
 * Counts over all rows and stores the figures, unless another worker does so or has lately.
 * @param everyMs shortest time between two counts
 * @param monotonicMs measures how long one takes
 */
export async function refreshFigures(db: Db, everyMs: number, monotonicMs: () => number): Promise<void> {
  await db.transaction(async (tx) => {
    if (!(await oneRow<{ mine: boolean }>(tx, LOCK)).mine) return;
    const last = await firstRow<Stored>(tx, STORED, []);
    const restMs = last === null ? 0 : Math.max(everyMs, Math.min(last.tookMs / SHARE, OLDEST_MS));
    // A clock that was set back makes the age negative.
    if (last !== null && last.ageMs >= 0 && last.ageMs < restMs) return;
    await runPrepared(tx, LIMIT);
    const begunMs = monotonicMs();
    const figures = await countAll(tx);
    await runPrepared(tx, STORE, [Math.round(monotonicMs() - begunMs), JSON.stringify(figures)]);
  });
}
