import { ORDER_WAIT_SECONDS } from '../../domain/delivery-now';
import type { LateReason } from '../../domain/lateness';
import type { Tenant } from '../../domain/tenant';
import { listInterruptions } from '../audit/lateness';
import { columns, firstRow, msText, oneRow, runPrepared, type Reader } from '../postgres/connect';
import { hint } from '../postgres/hints';
import { fromText, tenantOf, testIsDelayed, updateText, type NotificationRef } from './notification';

export interface ClaimedNotification extends NotificationRef, Tenant {
  readonly eventType: string;
  readonly applicationId: string | null;
  readonly requestId: string | null;
  /** W3C `traceparent` of the request that caused it, where traces were made. */
  readonly traceParent: string | null;
  readonly ageMs: number;
  /** What kept it from being sent before; of one that is late, or begins another generation. */
  readonly interruptions?: readonly LateReason[];
}

/** A queue by its name, `<partner>/<environment>` (queueName). */
export type Queue = string;

/**
 * A queue in which a claim left due notifications. `more`: the next claim can take some. `waits`: for a slot of the
 * endpoint, or for an earlier event. `contended`: another claim had the queue.
 */
interface Remaining {
  readonly queue: Queue;
  readonly why: 'more' | 'waits' | 'contended';
}

export interface Claim {
  readonly claimed: readonly ClaimedNotification[];
  /** Queues whose only due notifications are tests that are slowed down are not among them. */
  readonly remaining: readonly Remaining[];
}

export interface ClaimOptions {
  /** Most notifications; not less than there are queues. */
  readonly limit: number;
  /** Claimed notifications are due again after this, in case their process dies. */
  readonly leaseMs: number;
  /** Notifications that have been due for less than this are left. */
  readonly graceMs: number;
  readonly queues: readonly Queue[];
  /** Most first attempts of a queue under way, over all workers. */
  readonly slotsOf: (queue: Queue) => number;
}

const CLAIM = `
  select claimed, remaining
  from claim_notifications_3($1::int, make_interval(secs => $2::float8), make_interval(secs => $3::float8),
    make_interval(secs => $4::float8), $5::text[], $6::text[], $7::text[]::int[])`;

/** An outage is noted when it has lasted so long (db/processes.ts): a younger one has not been through any. */
const LATE_MS = 45_000;

/** Claims due notifications of some queues (claim.sql): live ones first, events in order. */
export async function claimDue(reader: Reader, options: ClaimOptions): Promise<Claim> {
  const { limit, leaseMs, graceMs, queues, slotsOf } = options;
  const names = queues.map(tenantOf);
  const parameters = [limit, leaseMs / 1_000, ORDER_WAIT_SECONDS, graceMs / 1_000];
  const partners = names.map(({ partnerId }) => partnerId);
  const environments = names.map(({ environment }) => environment);
  const slots = queues.map((queue) => String(slotsOf(queue)));
  const claim = await oneRow<Claim>(reader, CLAIM, [...parameters, partners, environments, slots]);
  const late = claim.claimed.filter(({ generation, ageMs }) => generation > 1 || ageMs > LATE_MS);
  if (late.length === 0) return claim;
  const found = await interruptionsOf(reader, late);
  const claimed = claim.claimed.map((one) => {
    const interruptions = found.filter(({ notificationId }) => notificationId === one.notificationId);
    return interruptions.length === 0 ? one : { ...one, interruptions };
  });
  return { ...claim, claimed };
}

/** A sweep finds queues through this many of the newest due notifications. */
const ROWS_SWEPT = 2_000;
/** When there are more, it also visits so many queues, one after the other, and the next sweep continues. */
const QUEUES_VISITED = 500;

const DUE_QUEUES = `
  select partner_id || '/' || environment as queue, rows, ${msText('service_now() - due_since')} as "dueForMs"
  from due_queues_1(${ROWS_SWEPT})`;
const QUEUED_QUEUES = `
  select partner_id || '/' || environment as queue, ${msText('service_now() - due_since')} as "dueForMs"
  from queued_queues_1(${QUEUES_VISITED}, $1, $2)`;

export interface DueQueue {
  readonly queue: Queue;
  /** For how long at least something in it has been due, in milliseconds. */
  readonly dueForMs: number;
}

export interface Sweep {
  readonly due: readonly DueQueue[];
  /** Whether these are all queues with due notifications. */
  readonly complete: boolean;
  /** Where the next sweep continues. */
  readonly after: Queue;
}

/** Looks for queues with due notifications. Paused queues are among them. @param after '' for the first */
export async function sweepQueues(reader: Reader, after: Queue): Promise<Sweep> {
  const newest = await runPrepared<DueQueue & { readonly rows: number }>(reader, DUE_QUEUES);
  const rows = newest.reduce((sum, one) => sum + one.rows, 0);
  if (rows < ROWS_SWEPT) return { due: newest, complete: true, after: '' };
  const { partnerId, environment } = tenantOf(after);
  type Visited = { readonly queue: Queue; readonly dueForMs: number | null };
  const visited = await runPrepared<Visited>(reader, QUEUED_QUEUES, [partnerId, environment]);
  const due = new Map(newest.map(({ queue, dueForMs }) => [queue, dueForMs]));
  for (const { queue, dueForMs } of visited)
    if (dueForMs !== null) due.set(queue, Math.max(dueForMs, due.get(queue) ?? 0));
  return {
    due: [...due].map(([queue, dueForMs]) => ({ queue, dueForMs })),
    complete: false,
    // Behind the last queue the next sweep begins with the first.
    after: visited.length < QUEUES_VISITED ? '' : (visited.at(-1)?.queue ?? ''),
  };
}

/** These details are for people. Their notifications are claimed by now, and wait for nothing else. */
const interruptionsOf = (reader: Reader, claimed: readonly NotificationRef[]) =>
  listInterruptions(
    reader,
    claimed.map(({ notificationId }) => notificationId),
  ).catch(() => []);

// Each row is found by its id: planned when the table is empty, a join with the list would read all rows.
const OF_THESE = `
  d.notification_id = any($1::text[])
    and (d.notification_id, d.generation::text) in (select * from unnest($1::text[], $2::text[]))`;
const idsAndGenerations = (of: readonly NotificationRef[]) => [
  of.map(({ notificationId }) => notificationId),
  of.map(({ generation }) => String(generation)),
];

const MARK_STARTED = `
  ${updateText('start', {})}
  where ${OF_THESE} and ${fromText('start')}`;

/** Records that workflows exist, unless their first attempt has recorded it. */
export async function markStarted(reader: Reader, started: readonly NotificationRef[]): Promise<void> {
  if (started.length === 0) return;
  await runPrepared(reader, MARK_STARTED, idsAndGenerations(started));
}

const GIVE_BACK = `
  ${updateText('give_back', { due_at: `service_now() + make_interval(secs => $3::float8)` })}
  where ${OF_THESE} and ${fromText('give_back')}
  returning d.notification_id as id, d.test`;

/**
 * Gives back notifications that could not be started, to be due again after a pause. Callers that wait
 * for a test get a hint.
 */
export async function giveBack(reader: Reader, claimed: readonly NotificationRef[], pauseMs: number) {
  if (claimed.length === 0) return;
  const which = [...idsAndGenerations(claimed), pauseMs / 1_000];
  const rows = await runPrepared<{ id: string; test: boolean }>(reader, GIVE_BACK, which);
  for (const { id, test } of rows) if (test) hint(reader, testIsDelayed(id));
}

/** When the last loss of workflows was found. What was compared with Temporal, or restarted, before then has to be again. */
export const LOST_AT = `select max(happened_at) from operator_events where kind = 'workflows_lost'`;

/** The wake that follows an order was lost when its workflow has not read it after so long. */
const WAKE_LOST_SECONDS = 30;

const CHECKED = `coalesce(checked_at, started_at, '-infinity')`;

// The orders are those of the indexes: planned when the table is empty, no other plan will do.
const CLAIM_UNCHECKED = `
  with old as (
    select notification_id from deliveries
    where state = 'started' and ordered_at is null
      and ${CHECKED} <= (select service_now() - make_interval(secs => $2::float8))
    order by ${CHECKED} limit $1::int for update skip locked),
  ordered as (
    select notification_id from deliveries
    where state = 'started' and greatest(ordered_at, ${CHECKED})
      <= service_now() - make_interval(secs => least($2::float8, ${WAKE_LOST_SECONDS}))
      and ordered_at <= (select service_now() - make_interval(secs => least($2::float8, ${WAKE_LOST_SECONDS})))
    order by ordered_at limit $1::int for update skip locked)
  ${updateText('check', {})}
  where d.notification_id = any(array(select notification_id from ordered union all select notification_id from old limit $1::int))
  returning d.notification_id as "notificationId", d.generation, d.ordered_at is not null as ordered,
    d.paused_at is not null as paused, d.attempts > 0 as attempted`;

export type UncheckedNotification = NotificationRef & {
  /** Its workflow has not read the last order of an operator. */
  readonly ordered: boolean;
  readonly paused: boolean;
  readonly attempted: boolean;
};

/** Claims started notifications whose workflow has not been looked for lately, or has not read an order. */
export const claimUnchecked = (
  reader: Reader,
  { limit, olderThanMs }: { limit: number; olderThanMs: number },
) => runPrepared<UncheckedNotification>(reader, CLAIM_UNCHECKED, [limit, olderThanMs / 1_000]);

const REPAIRS_LOSS = `
  coalesce((select ${CHECKED} from deliveries where state = 'started' order by 1 limit 1) < (${LOST_AT}), false)`;

/** Whether started notifications have not been compared with Temporal since the last loss of workflows. */
export const repairsLoss = async (reader: Reader): Promise<boolean> =>
  (await oneRow<{ repairs: boolean }>(reader, `select ${REPAIRS_LOSS} as repairs`)).repairs;

const NOTE_LOSS = `
  insert into operator_events (kind) select 'workflows_lost' where not ${REPAIRS_LOSS} returning event_id`;

/**
 * Notes a loss of workflows, unless an earlier one is being repaired.
 * @returns whether it was noted
 */
export const noteLoss = async (reader: Reader): Promise<boolean> =>
  (await runPrepared(reader, NOTE_LOSS)).length > 0;

const RESTART = `
  with restarted as (
    ${updateText('restart', {})}
    where d.notification_id = $1 and d.generation = $2::int and ${fromText('restart')}
    returning ${columns('d', 'notification_id, generation, partner_id, environment, application_id')},
      d.paused_at is not null or coalesce(d.next_attempt_at > service_now() + interval '2 s', false) as waits)
  select r.*, coalesce(n.event_type, 'unknown') as "eventType"
  from restarted r left join notifications n on n.notification_id = $1`;

export type RestartedNotification = Omit<ClaimedNotification, 'requestId' | 'traceParent' | 'ageMs'> & {
  /** Its next attempt is planned for later, or it is paused. */
  readonly waits: boolean;
};

/**
 * Gives a started notification its next generation, when its workflow is gone. Its step of the ladder,
 * its next attempt and its pause stay.
 * @returns null when it is no longer started, or of another generation
 */
export async function restartNotification(reader: Reader, { notificationId, generation }: NotificationRef) {
  const restarted = await firstRow<RestartedNotification>(reader, RESTART, [notificationId, generation]);
  return restarted && { ...restarted, interruptions: await interruptionsOf(reader, [restarted]) };
}

const UNOPENED = `
  select notification_id as "notificationId", generation from deliveries
  where notification_id = any($1::text[]) and state = 'started' and checked_at is null`;

/** Those whose new workflow has not read the row yet. */
export const unopened = (reader: Reader, restarted: readonly NotificationRef[]) =>
  runPrepared<NotificationRef>(reader, UNOPENED, [restarted.map((one) => one.notificationId)]);
