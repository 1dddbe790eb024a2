import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  ne,
  sql,
} from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { deliveryAttempts, notifications } from '../schema';
import { given } from '../schema/columns';
import type { EndpointQueue } from './hold';
import { OPEN_STATES, type NotificationState } from '../../domain/notification-states';

export type Notification = typeof notifications.$inferSelect;
export type DeliveryAttempt = typeof deliveryAttempts.$inferSelect;
export type AttemptSummary = Omit<DeliveryAttempt, 'answer'>;
export type NotificationSummary = Omit<Notification, 'body'>;
/** With what its last finished attempt came to: `http_status 503`, `connect`, `unknown`; null when there is none. */
export type ListedNotification = NotificationSummary & { readonly lastOutcome: string | null };

const { body: _, ...SUMMARY } = getTableColumns(notifications);

const lastOutcome = (oldest: string) => sql<string | null>`(
  select case a.outcome when 'failed' then concat_ws(' ', a.failure, a.http_status) else a.outcome end
  from delivery_attempts a
  where a.notification_id = notifications.notification_id and a.notification_id >= ${oldest} and a.finished_at is not null
  order by a.attempt_number desc limit 1)`;

export interface NotificationFilter {
  readonly partnerId?: string | undefined;
  readonly environment?: KeyEnvironment | undefined;
  /** In one of these states. */
  readonly states?: readonly NotificationState[] | undefined;
  /** Never delivered, and not cancelled either: what a partner is still owed, or did not get. */
  readonly undelivered: boolean;
  /** Paused by somebody. */
  readonly paused: boolean;
  readonly applicationId?: string | undefined;
  /** Of applications with this reference of the partner's. */
  readonly merchantReference?: string | undefined;
  /** How far back, in seconds. */
  readonly sinceSeconds: number;
  /** Only those older than this one: the next page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Reads one notification; null when there is none, or its month has been dropped. */
export async function findNotification(
  db: DbOrTransaction,
  notificationId: string,
): Promise<Notification | null> {
  const [row] = await db.select().from(notifications).where(eq(notifications.notificationId, notificationId));
  return row ?? null;
}

/**
 * The same, locked until the transaction ends.
 * @param owner whose it must be: others' are neither found nor waited for. Absent: anybody's.
 */
export async function lockNotification(
  tx: DbOrTransaction,
  notificationId: string,
  owner?: EndpointQueue,
): Promise<Notification | null> {
  const [row] = await tx
    .select()
    .from(notifications)
    .where(
      and(
        eq(notifications.notificationId, notificationId),
        owner && eq(notifications.partnerId, owner.partnerId),
        owner && eq(notifications.environment, owner.environment),
      ),
    )
    .for('update');
  return row ?? null;
}

const ENVIRONMENTS: readonly KeyEnvironment[] = ['sandbox', 'live'];

/** Notifications, newest first. The span bounds what is read: ids sort by time, and their months are partitions. */
export async function listNotifications(
  db: DbOrTransaction,
  filter: NotificationFilter,
): Promise<ListedNotification[]> {
  const oldest = await oldestOf(db, filter);
  // The index of a partner's notifications has them by environment.
  if (filter.partnerId === undefined || filter.environment !== undefined) return listOf(db, filter, oldest);
  const lists = [];
  for (const environment of ENVIRONMENTS) lists.push(await listOf(db, { ...filter, environment }, oldest));
  const newestFirst = (one: ListedNotification, other: ListedNotification) =>
    one.notificationId < other.notificationId ? 1 : -1;
  return lists.flat().toSorted(newestFirst).slice(0, filter.limit);
}

async function listOf(
  db: DbOrTransaction,
  filter: NotificationFilter,
  oldest: string,
): Promise<ListedNotification[]> {
  const { states, undelivered, paused, merchantReference } = filter;
  const { notificationId, partnerId, environment, state, applicationId } = notifications;
  const referenced = sql`${applicationId} in (
    select application_id from credit_applications where merchant_reference = ${merchantReference})`;
  return db
    .select({ ...SUMMARY, lastOutcome: lastOutcome(oldest) })
    .from(notifications)
    .where(
      and(
        gte(notificationId, oldest),
        given(partnerId, filter.partnerId),
        given(environment, filter.environment),
        states && inArray(state, [...states]),
        given(notificationId, filter.after, lt),
        paused ? and(isNotNull(notifications.pausedAt), inArray(state, [...OPEN_STATES])) : undefined,
        given(applicationId, filter.applicationId),
        merchantReference === undefined ? undefined : referenced,
        undelivered ? and(isNull(notifications.deliveredAt), ne(state, 'cancelled')) : undefined,
      ),
    )
    .orderBy(desc(notificationId))
    .limit(filter.limit);
}

/** The lowest id that a list may contain. A value, not an expression, so that older months are left out before anything is planned. */
async function oldestOf(
  db: DbOrTransaction,
  { sinceSeconds, applicationId }: NotificationFilter,
): Promise<string> {
  const [row] = await db.execute<{ oldest: string }>(sql`
    select 'ntf_' || ulid_floor(greatest(service_now() - make_interval(secs => ${sinceSeconds}::float8),
      (select created_at - interval '1 day' from credit_applications where application_id = ${applicationId ?? null}::text))) as oldest`);
  if (row === undefined) throw new Error('the span of a list came to nothing');
  return row.oldest;
}

/** The attempts of a notification, oldest first, over all generations. */
export async function listAttempts(db: DbOrTransaction, notificationId: string): Promise<DeliveryAttempt[]> {
  return db
    .select()
    .from(deliveryAttempts)
    .where(eq(deliveryAttempts.notificationId, notificationId))
    .orderBy(asc(deliveryAttempts.attemptNumber));
}
