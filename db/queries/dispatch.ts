import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../connect';
import { ATTEMPTS_CHANNEL } from './record-attempt';

/** A notification that a dispatcher has taken, for as long as the lease lasts. */
export interface ClaimedNotification {
  readonly notificationId: string;
  readonly generation: number;
  readonly eventType: string;
  readonly partnerId: string;
  readonly environment: 'sandbox' | 'live';
  readonly applicationId: string | null;
}

/**
 * Takes notifications that are due, oldest first; SKIP LOCKED keeps dispatchers out of each other's way. The lease
 * means that one taken by a process that dies is due again when it ends: starting a workflow twice is harmless.
 */
export async function claimDue(
  db: DbOrTransaction,
  { limit, leaseMs }: { limit: number; leaseMs: number },
): Promise<ClaimedNotification[]> {
  const rows = await db.execute(sql`
    with due as (
      select notification_id from notifications
      where state = 'pending' and due_at <= service_now()
      order by due_at limit ${limit} for update skip locked)
    update notifications n set due_at = service_now() + make_interval(secs => ${leaseMs / 1_000}::float8)
    from due where n.notification_id = due.notification_id
    returning n.notification_id as "notificationId", n.generation, n.event_type as "eventType",
      n.partner_id as "partnerId", n.environment, n.application_id as "applicationId"`);
  return [...rows] as unknown as ClaimedNotification[];
}

/**
 * Notes that their workflows exist. One whose workflow is already further stays as it is, and so does one whose first
 * attempt has noted it.
 */
export async function markStarted(
  db: DbOrTransaction,
  started: readonly ClaimedNotification[],
): Promise<void> {
  if (started.length === 0) return;
  const ids = sql.join(
    started.map(({ notificationId, generation }) => sql`(${notificationId}, ${generation}::int)`),
    sql`, `,
  );
  await db.execute(sql`
    update notifications set state = 'started',
      started_at = coalesce(started_at, service_now()), checked_at = service_now()
    where (notification_id, generation) in (${ids})
      and (state = 'pending' or (state = 'started' and (started_at is null or checked_at is null)))`);
}

/**
 * Gives back what could not be started: due again after a pause. Whoever waits for the first attempt is told that it will
 * take longer (payload `<id>:delayed`).
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
  await db.execute(sql`
    update notifications set due_at = service_now() + make_interval(secs => ${pauseMs / 1_000}::float8)
    where notification_id in (${ids}) and state = 'pending'
    returning pg_notify(${ATTEMPTS_CHANNEL}, notification_id || ':delayed')`);
}

/** A started notification whose workflow nobody has asked after for a while. */
export interface UncheckedNotification {
  readonly notificationId: string;
  readonly generation: number;
}

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
    update notifications n set checked_at = service_now()
    from old where n.notification_id = old.notification_id
    returning n.notification_id as "notificationId", n.generation`);
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
    update notifications set state = 'pending', due_at = service_now(), generation = generation + 1,
      taken_at = null, first_attempt_at = null
    where notification_id = ${notificationId} and generation = ${generation} and state = 'started'
    returning 1`);
  return rows.length > 0;
}

/** How much is waiting, and since when: the backlog's size and age for metrics. */
export async function backlog(db: DbOrTransaction): Promise<{ pending: number; oldestMs: number }> {
  const [row] = await db.execute<{ pending: number; oldest: number }>(sql`
    select count(*)::int as pending,
      coalesce(extract(epoch from service_now() - min(created_at)) * 1000, 0)::float8 as oldest
    from notifications where state = 'pending'`);
  return { pending: row?.pending ?? 0, oldestMs: row?.oldest ?? 0 };
}
