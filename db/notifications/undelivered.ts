import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { STATUS_SQL } from '../schema';
import { hasActiveEndpoint } from './hold';

/** What a recovery is about. Moments in ISO 8601; `until` is exclusive. */
export interface RecoverySpan {
  readonly partnerId: string;
  /** One environment only; null: both. */
  readonly environment: KeyEnvironment | null;
  readonly since: string;
  readonly until: string;
}

/** Notifications of one kind that were never delivered. */
export interface UndeliveredCount {
  readonly environment: KeyEnvironment;
  readonly eventType: string;
  readonly state: string;
  readonly count: number;
  /** What a recovery would do with them, and why it leaves them. */
  readonly plan: 'send' | 'test' | 'under_way' | 'cancelled' | 'no_endpoint' | 'body_removed';
}

/** One that is to be sent, at its place in the order of work. */
export interface RecoveryItem {
  readonly notificationId: string;
  /** Empty for one that tells of no application. */
  readonly application: string;
  readonly sequence: number;
}

/** Ids sort by time, so that the span bounds what is read. */
const inSpan = ({ partnerId, environment, since, until }: RecoverySpan) => sql`
  n.partner_id = ${partnerId}
  and n.notification_id >= 'ntf_' || ulid_floor(${since}::timestamptz)
  and n.notification_id < 'ntf_' || ulid_floor(${until}::timestamptz)
  and n.delivered_at is null ${environment === null ? sql`` : sql`and n.environment = ${environment}`}`;

/** For the index of partners' statuses: what is delivered is not read. */
export const RECOVERABLE = sql.raw(`(${STATUS_SQL}) in ('failed', 'held', 'expired')`);

/** Tests have a strict limit, and a test of yesterday tells nobody anything: they are resent one by one. */
const PLAN = sql`
  case when n.event_type = ${TEST_EVENT_TYPE} then 'test'
    when n.state in ('pending', 'started') then 'under_way'
    when n.state = 'cancelled' then 'cancelled'
    when n.body = '' then 'body_removed'
    when not ${hasActiveEndpoint('n')} then 'no_endpoint'
    else 'send' end`;

/** Counts what was never delivered in a span, by what a recovery would do with it. Changes nothing. */
export async function countUndelivered(db: DbOrTransaction, span: RecoverySpan): Promise<UndeliveredCount[]> {
  const rows = await db.execute(sql`
    select n.environment, n.event_type as "eventType", n.state, ${PLAN} as plan, count(*)::int as count
    from notifications n where ${inSpan(span)} group by 1, 2, 3, 4 order by 1, 2, 3, 4`);
  return [...rows] as unknown as UndeliveredCount[];
}

/**
 * What a recovery is to send, in its order of work: application by application, and each one's events by their
 * sequence, so that none overtakes an earlier one.
 * @param after the last that has been dealt with.
 */
export async function listRecoverable(
  db: DbOrTransaction,
  span: RecoverySpan,
  after: RecoveryItem,
): Promise<RecoveryItem[]> {
  const rows = await db.execute(sql`
    select notification_id as "notificationId", application, sequence from (
      select n.notification_id, coalesce(n.application_id, '') collate "C" as application,
        coalesce(n.sequence, 0) as sequence
      from notifications n where ${inSpan(span)} and ${RECOVERABLE} and (${PLAN}) = 'send') due
    where (application, sequence, notification_id) > (${after.application}, ${after.sequence}::int, ${after.notificationId})
    order by application, sequence, notification_id`);
  return [...rows] as unknown as RecoveryItem[];
}
