import { columns, firstRow, msText, rowsOf, runPrepared, type Reader } from './postgres/connect';
import type { processes } from './schema';

export const BEAT_EVERY_MS = 10_000;
/** A process that has not written for this long, three beats and a margin, counts as lost. */
export const LOST_AFTER_MS = 45_000;
const SHOWN_FOR_MS = 900_000;

type Stored = Readonly<typeof processes.$inferSelect>;

export interface Beat extends Pick<Stored, 'processId' | 'kind' | 'host' | 'build'> {
  readonly temporal: boolean;
  /** Since when a worker's network reaches nobody; null when it does. */
  readonly cutOffSince?: Date | null;
  /** Whether a worker starts deliveries. */
  readonly starts?: boolean;
  /** What it cannot do although it runs, in words for operators; the first 300 characters are kept. */
  readonly trouble?: string | null;
}

const WRITE = `
  insert into processes (process_id, kind, host, build, temporal_at, trouble)
  values ($1, $2, $3, $4, case when $5::boolean then service_now() end, left($6, 300))
  on conflict (process_id) do update
    set seen_at = service_now(), temporal_at = coalesce(excluded.temporal_at, processes.temporal_at),
      trouble = excluded.trouble`;

// All parts see the rows as they were before. A gap in the beats of all workers was an outage, which
// ends now. Temporal was away only while workers wrote that they did not reach it: when none wrote,
// nothing is known of Temporal.
const WORKER_WRITE = `
  insert into processes (process_id, kind, host, build, temporal_at, trouble, cut_off_since, seat)
  values ($1, $2, $3, $4, case when $5::boolean then service_now() end, left($6, 300), $8::text::timestamptz, (select seat from seats))
  on conflict (process_id) do update
    set seen_at = service_now(), temporal_at = coalesce(excluded.temporal_at, processes.temporal_at),
      trouble = excluded.trouble, cut_off_since = excluded.cut_off_since, seat = excluded.seat`;

/** The seat of a worker that has not written for this long, two beats and a margin, is free. */
const SEAT_KEPT_MS = 25_000;
const SEATED = `kind = 'worker' and seat is not null and stopped_at is null
  and seen_at > service_now() - make_interval(secs => ${SEAT_KEPT_MS / 1_000})`;
// A worker keeps its seat, but gives way to an older one that has it too; a new one takes the lowest that is free, so that
// a restarted worker gets the queues that it had.
const SEATS = `
  seats as (
    select case when $7::boolean then coalesce(
      (select own.seat from processes own where own.process_id = $1 and not exists (
        select from processes p where ${SEATED} and p.seat = own.seat and p.process_id < $1)),
      (select min(n) from generate_series(0, (select count(*) from processes where ${SEATED})) n where not exists (
        select from processes p where ${SEATED} and p.seat = n and p.process_id <> $1)))::smallint end as seat)`;

const WRITE_AS_WORKER = `
  with earlier as (select max(seen_at) as seen, max(temporal_at) as temporal from processes where kind = 'worker'),
  noted as (
    insert into outages (kind, began_at)
    select kind, began_at from earlier, lateral (
      values
        ('workers', seen),
        ('temporal', case when $5::boolean and temporal < seen - make_interval(secs => ${(1.5 * BEAT_EVERY_MS) / 1_000}) then temporal end)
    ) o (kind, began_at)
    where began_at < service_now() - make_interval(secs => ${LOST_AFTER_MS / 1_000})
    on conflict do nothing),
  old as (delete from processes where seen_at < service_now() - interval '1 day' and process_id <> $1),
  ${SEATS}
  ${WORKER_WRITE}`;

/** Writes that a process runs. A worker also notes an outage that ends with this beat. */
export async function writeBeat(
  reader: Reader,
  { processId, kind, host, build, temporal, cutOffSince, starts = false, trouble = null }: Beat,
) {
  const parameters = [processId, kind, host, build, temporal, trouble];
  await (kind === 'worker'
    ? runPrepared(reader, WRITE_AS_WORKER, [...parameters, starts, cutOffSince?.toISOString() ?? null])
    : runPrepared(reader, WRITE, parameters));
}

/** Writes that a process was stopped in order, so that it does not count as lost. */
export const writeStop = (reader: Reader, processId: string) =>
  runPrepared(
    reader,
    'update processes set stopped_at = service_now(), seen_at = service_now() where process_id = $1',
    [processId],
  );

export interface Seat {
  readonly processId: string;
  readonly seat: number;
}

/** The workers that start deliveries, and one that was frozen or killed less than 25 s ago. */
export const listSeats = (reader: Reader) =>
  runPrepared<Seat>(
    reader,
    `select process_id as "processId", seat from processes where ${SEATED} order by process_id`,
  );

interface RunningProcess extends Pick<
  Stored,
  'kind' | 'host' | 'build' | 'startedAt' | 'seenAt' | 'cutOffSince' | 'trouble'
> {
  readonly lost: boolean;
  readonly withoutTemporal: boolean;
}

const LOST = `make_interval(secs => ${LOST_AFTER_MS / 1_000})`;
const LIST = `
  with recent as (
    select *, stopped_at is null and seen_at < service_now() - ${LOST} as lost from processes
    where seen_at > service_now() - make_interval(secs => ${SHOWN_FOR_MS / 1_000}))
  select ${columns('p', 'kind, host, build, started_at, seen_at, cut_off_since, trouble')}, p.lost,
    p.kind = 'worker' and coalesce(p.temporal_at, p.started_at) < p.seen_at - ${LOST} as "withoutTemporal"
  from recent p
  where p.stopped_at is null and (not p.lost
    or (select count(*) from recent r where (r.kind, r.host) = (p.kind, p.host) and not r.lost and r.started_at > p.seen_at)
      < (select count(*) from recent r where (r.kind, r.host) = (p.kind, p.host) and r.lost and r.seen_at >= p.seen_at))
  order by p.kind, p.host, p.started_at`;

/** The running processes, and those lost within a quarter of an hour for which none has started on their host since. */
export const listProcesses = (reader: Reader) => rowsOf<RunningProcess>(reader, LIST, []);

interface PostgresState {
  /** `standby`: this login reached a server that cannot write; `read-only`: one that was told not to. */
  readonly role: 'leader' | 'standby' | 'read-only';
  readonly standbys: number;
  /** Whether Postgres waits for a standby at each commit (`synchronous_standby_names`). */
  readonly synchronous: boolean;
  readonly lastBackupAt: Date | null;
  /** In use for more than a day, so that there should be a backup. */
  readonly inUse: boolean;
}

const POSTGRES = `
  select case when pg_is_in_recovery() then 'standby' when current_setting('transaction_read_only')::bool then 'read-only'
      else 'leader' end as role,
    (select count(*)::int from pg_stat_replication) as standbys,
    current_setting('synchronous_standby_names') <> '' as synchronous,
    (select ${msText('max(completed_at)')} from backups) as "lastBackupAt",
    exists (select from partners where created_at < service_now() - interval '26 hours') as "inUse"`;

export const readPostgres = async (reader: Reader) =>
  (await firstRow<PostgresState>(reader, POSTGRES, [])) as PostgresState;

// Workers that share a way out note one outage together.
const NETWORK_OUTAGE = `
  with longer as (
    update outages set ended_at = greatest(ended_at, $2::text::timestamptz)
    where kind = 'network' and ended_at >= $1::text::timestamptz and began_at <= $2::text::timestamptz returning 1)
  insert into outages (kind, began_at)
  select 'network', $1::text::timestamptz where not exists (select from longer) on conflict do nothing`;

/** Notes an outage of a worker's network that is over. */
export const noteNetworkOutage = (reader: Reader, { since, until }: { since: Date; until: Date }) =>
  runPrepared(reader, NETWORK_OUTAGE, [since.toISOString(), until.toISOString()]);

/** Since when the network of any running worker reaches nobody; null when each reaches somebody. */
export const CUT_OFF_SINCE = `(
  select min(cut_off_since) from processes where kind = 'worker' and stopped_at is null and seen_at > service_now() - ${LOST})`;
