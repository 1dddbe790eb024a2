import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { ORDER_WAIT_SECONDS } from './application-order';
import { runPrepared, type Reader } from '../postgres/prepared';
import { hint } from '../postgres/hints';
import type { Notification } from './read';
import { testIsDelayed } from './channels';
import { updateSql, updateText } from './update';

/** A notification that a dispatcher has taken, for as long as the lease lasts. */
export interface ClaimedNotification extends Pick<
  Notification,
  'notificationId' | 'generation' | 'eventType' | 'partnerId' | 'environment' | 'applicationId'
> {
  readonly requestId: string | null;
  /** W3C `traceparent` of the request that caused it, where traces were on. */
  readonly traceParent: string | null;
  readonly ageMs: number;
}

/** Endpoints are served in turn: the partner and environment that a claim served last. */
export interface Turn {
  readonly partnerId: string;
  readonly environment: string;
}

export const FIRST_TURN: Turn = { partnerId: '', environment: '' };

export interface Claim {
  readonly claimed: readonly ClaimedNotification[];
  /** Something due was left, but for paced tests: its endpoint has no slot, an earlier event is open, or there was more than `limit`. */
  readonly waiting: boolean;
  /** Of it, some was left to another claim, which works on that endpoint at this moment. */
  readonly contended: boolean;
  /** Every month was asked for, and something of a month before the last is open: ask for every month again. */
  readonly older: boolean;
  readonly turn: Turn;
}

export interface ClaimOptions {
  /** Most that are taken, 1 or more. */
  readonly limit: number;
  /** Most first attempts under way to one endpoint, over all workers. */
  readonly slots: number;
  /** One taken by a process that dies is due again after this: starting a workflow twice is harmless. */
  readonly leaseMs: number;
  readonly turn: Turn;
  /** Whether what is of neither this month nor the last counts too: each month costs two looks into its indexes. */
  readonly everyMonth: boolean;
}

const CLAIM = `
  select claimed, waiting, contended, older, last_partner as partner, last_environment as environment
  from claim_notifications($1::int, $2::int, make_interval(secs => $3::float8), make_interval(secs => $4::float8),
    $5::text, $6::text, $7::bool)`;

/**
 * Takes notifications that are due: from endpoints in turn, first attempts before bulk recovery, an application's events in
 * their order. Claims of one endpoint take turns in the database, so that together they never exceed its slots; claims of
 * different endpoints do not wait for one another.
 */
export async function claimDue(
  reader: Reader,
  { limit, slots, leaseMs, turn, everyMonth }: ClaimOptions,
): Promise<Claim> {
  type Row = Omit<Claim, 'turn'> & { readonly partner: string; readonly environment: string };
  const [row] = await runPrepared<Row>(reader, CLAIM, [
    limit,
    slots,
    leaseMs / 1_000,
    ORDER_WAIT_SECONDS,
    turn.partnerId,
    turn.environment,
    everyMonth,
  ]);
  if (row === undefined) throw new Error('the claim came to nothing');
  const { partner: partnerId, environment, ...claim } = row;
  return { ...claim, turn: { partnerId, environment } };
}

const MARK_STARTED = `
  ${updateText('start', {})}
  from unnest($1::text[], $2::text[]) as s (notification_id, generation)
  where t.notification_id = any($1::text[])
    and t.notification_id = s.notification_id and t.generation::text = s.generation
    and t.state = 'pending'`;

/**
 * Notes that their workflows exist. One whose workflow is already further stays as it is, and so does one whose first
 * attempt has noted it.
 */
export async function markStarted(reader: Reader, started: readonly ClaimedNotification[]): Promise<void> {
  if (started.length === 0) return;
  const ids = started.map(({ notificationId }) => notificationId);
  const generations = started.map(({ generation }) => String(generation));
  await runPrepared(reader, MARK_STARTED, [ids, generations]);
}

/**
 * Gives back what could not be started: due again after a pause. Whoever waits for the first attempt of a test is told that
 * it will take longer.
 */
export async function giveBack(
  db: DbOrTransaction,
  claimed: readonly ClaimedNotification[],
  pauseMs: number,
): Promise<void> {
  if (claimed.length === 0) return;
  const ids = sql.join(
    claimed.map(({ notificationId }) => sql`${notificationId}`),
    sql`, `,
  );
  const rows = await db.execute<{ notificationId: string; isTest: boolean }>(sql`
    ${updateSql('give_back', { due_at: sql`service_now() + make_interval(secs => ${pauseMs / 1_000}::float8)` })}
    where t.notification_id in (${ids}) and t.state = 'pending'
    returning t.notification_id as "notificationId", t.reserved_month is not null as "isTest"`);
  for (const { notificationId, isTest } of rows) if (isTest) hint(db, testIsDelayed(notificationId));
}

/** A started notification whose workflow nobody has asked after for a while. */
export type UncheckedNotification = Pick<ClaimedNotification, 'notificationId' | 'generation'>;

/** Takes some of the started notifications that were last checked longest ago. */
export async function claimUnchecked(
  db: DbOrTransaction,
  { limit, olderThanMs }: { limit: number; olderThanMs: number },
): Promise<UncheckedNotification[]> {
  const rows = await db.execute(sql`
    with old as (
      select notification_id from notifications
      where state = 'started'
        and (checked_at is null or checked_at <= service_now() - make_interval(secs => ${olderThanMs / 1_000}::float8))
      order by checked_at nulls first limit ${limit} for update skip locked)
    ${updateSql('check', {})}
    from old where t.notification_id = old.notification_id
    returning t.notification_id as "notificationId", t.generation`);
  return [...rows] as unknown as UncheckedNotification[];
}

/**
 * Makes a started notification pending again, under the next generation: its workflow is gone, or ended without a word.
 * @returns false when it is no longer started, or of another generation.
 */
export async function restartNotification(
  db: DbOrTransaction,
  { notificationId, generation }: UncheckedNotification,
): Promise<boolean> {
  const rows = await db.execute(sql`
    ${updateSql('restart', {})}
    where t.notification_id = ${notificationId} and t.generation = ${generation} and t.state = 'started'
    returning 1`);
  return rows.length > 0;
}

/** What waits for its workflow; ages in milliseconds, 0 when nothing waits. */
export interface Backlog {
  readonly pending: number;
  /** Of those whose endpoint has a free slot: one slow endpoint does not hide that nothing is started. */
  readonly oldestMs: number;
  /** Of it, what is due and whose endpoint has no place. */
  readonly capped: number;
  readonly oldestCappedMs: number;
}

const BACKLOG = `
  with capped as (
    -- Started ones alone are first attempts under way; what is taken and not started may wait for Temporal.
    select partner_id, environment, count(*) filter (where state = 'started') >= $1::int as "full" from notifications
    where taken_at is not null and state in ('pending', 'started') and (state = 'started' or due_at > service_now())
    group by 1, 2 having count(*) >= $1::int),
  waiting as (
    select n.created_at, n.due_at, coalesce(c."full", false) as "full",
      c.partner_id is not null and n.due_at <= service_now() as capped
    from notifications n left join capped c using (partner_id, environment) where n.state = 'pending')
  select count(*)::int as pending, (count(*) filter (where capped))::int as capped,
    coalesce(extract(epoch from service_now() - min(created_at) filter (where not "full")) * 1000, 0)::float8 as "oldestMs",
    coalesce(extract(epoch from service_now() - min(due_at) filter (where capped)) * 1000, 0)::float8 as "oldestCappedMs"
  from waiting`;

/** How much is waiting, and since when: for metrics. Reads every pending row. */
export async function backlog(reader: Reader, { slots }: Pick<ClaimOptions, 'slots'>): Promise<Backlog> {
  const [row] = await runPrepared<Record<keyof Backlog, number>>(reader, BACKLOG, [slots]);
  if (row === undefined) throw new Error('the backlog came to nothing');
  return row;
}
