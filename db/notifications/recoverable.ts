import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import { LONGEST_RECOVERY_DAYS } from '../../domain/retention';
import type { Tenant } from '../../domain/tenant';
import { hasActiveEndpoint } from '../endpoints/endpoints';
import { databaseNow, oneRow, runPrepared, type Reader } from '../postgres/connect';
import { Refused } from '../refused';
import { deliveryStatus, endedStatus } from '../schema';

/** What a recovery is about. Moments are in ISO 8601; `until` is exclusive. */
export interface RecoverySpan {
  readonly partnerId: string;
  /** One environment only; null: both. */
  readonly environment: Tenant['environment'] | null;
  readonly since: string;
  readonly until: string;
}

/** A moment, or how long ago it was. */
export type MomentOrAgo = { readonly at: Date } | { readonly agoSeconds: number };

/**
 * Reads a span by the database's clock. It never reaches into the future, where it would grow.
 * @throws Refused when it begins too long ago, or is empty
 */
export async function resolveSpan(
  reader: Reader,
  since: MomentOrAgo,
  until: MomentOrAgo = { agoSeconds: 0 },
  mostDays: number = LONGEST_RECOVERY_DAYS,
) {
  const now = (await databaseNow(reader)).getTime();
  const at = (one: MomentOrAgo) => ('at' in one ? one.at.getTime() : now - one.agoSeconds * 1_000);
  const [from, to] = [at(since), Math.min(at(until), now)];
  if (now - from > mostDays * 86_400_000)
    throw new Refused('invalid', `The span may begin at most ${mostDays} days ago.`, 'too_long_ago');
  if (from >= to)
    throw new Refused('invalid', 'The span is empty: it must begin before its end and now.', 'empty_span');
  return { since: new Date(from).toISOString(), until: new Date(to).toISOString() };
}

export interface RecoveryItem {
  readonly notificationId: string;
  /** Empty for a notification without an application. */
  readonly application: string;
  readonly sequence: number;
}

// Parameters: partner, environments, since, until. As ids sort by time, the span bounds the reads.
const inSpan = (t: string) => `${t}.partner_id = $1 and ${t}.environment = any($2::text[])
  and ${t}.notification_id >= 'ntf_' || ulid_floor($3::text::timestamptz)
  and ${t}.notification_id < 'ntf_' || ulid_floor($4::text::timestamptz)`;
const spanOf = ({ partnerId, environment, since, until }: RecoverySpan) => [
  partnerId,
  environment === null ? ['sandbox', 'live'] : [environment],
  since,
  until,
];

// A recovery may send notifications that ended undelivered, found by the index of that status. Tests
// have a strict quota, and are resent one by one.
const ENDED = `${inSpan('n')} and n.end_state is not null and (${endedStatus('n.')}) in ('failed', 'expired')`;
const SENDABLE = `n.event_type <> '${TEST_EVENT_TYPE}' and n.body <> ''`;
// And held ones, which have a body and are no tests.
const HELD = `${inSpan('d')} and (${deliveryStatus('d.')}) = 'held' and not d.delivered`;

/** What a partner is told at most, so that it cannot have a million rows counted. */
export const MOST_MATCHED = 10_000;
/** Ended ones that a partner's count reads at most, with the tests among them: 40 ms of Postgres. */
const MOST_READ = 15_000;

const COUNT_UP_TO = `
  select (count(*) filter (where sendable))::int as found, count(*) filter (where ended) = ${MOST_READ} as cut
  from (
    (select ${SENDABLE} as sendable, true as ended from notifications n where ${ENDED} limit ${MOST_READ})
    union all
    (select true, false from deliveries d where ${HELD} limit ${MOST_MATCHED + 1})) q`;

export interface Matched {
  readonly matched: number;
  /** There are more, or may be. */
  readonly isMinimum: boolean;
}

/** Counts what a recovery has to send, up to MOST_MATCHED. The pool has to follow indexes. */
export async function countUpTo(reader: Reader, span: RecoverySpan): Promise<Matched> {
  const { found, cut } = await oneRow<{ found: number; cut: boolean }>(reader, COUNT_UP_TO, spanOf(span));
  return { matched: Math.min(found, MOST_MATCHED), isMinimum: cut || found > MOST_MATCHED };
}

const recoverable = (ofEnded: string, ofHeld: string) => `
  select ${ofEnded} from notifications n where ${ENDED} and ${SENDABLE}
  union all
  select ${ofHeld} from deliveries d where ${HELD}`;

const columnsOf = (t: string) =>
  `${t}.notification_id as "notificationId", coalesce(${t}.application_id, '') collate "C" as application,
    coalesce(${t}.sequence, 0) as sequence, ${t}.partner_id, ${t}.environment`;

const COUNT = `select count(*)::int as count from (${recoverable('1', '1')}) q`;

/** Counts all of it, in time that grows with it. */
export const countRecoverable = async (reader: Reader, span: RecoverySpan) =>
  (await oneRow<{ count: number }>(reader, COUNT, spanOf(span))).count;

/** A million at once would take a worker 300 MB. At ten a second this is a quarter of an hour. */
export const LISTED_AT_A_TIME = 10_000;

const LIST = `
  select "notificationId", application, sequence from (
    ${recoverable(columnsOf('n'), columnsOf('d'))}) q
  where (application, sequence, "notificationId") > ($5, $6::int, $7) and ${hasActiveEndpoint('q')}
  order by application, sequence, "notificationId" limit ${LISTED_AT_A_TIME}`;

/**
 * The next that a recovery has to send, by application and sequence, so that no event overtakes an
 * earlier one. Empty at the end.
 */
export function listRecoverable(
  reader: Reader,
  { last, ...span }: RecoverySpan & { readonly last: RecoveryItem },
): Promise<RecoveryItem[]> {
  const parameters = [...spanOf(span), last.application, last.sequence, last.notificationId];
  return runPrepared<RecoveryItem>(reader, LIST, parameters);
}

export interface UndeliveredCount {
  readonly environment: Tenant['environment'];
  readonly eventType: string;
  readonly state: string;
  readonly count: number;
  readonly plan: 'send' | 'test' | 'under_way' | 'cancelled' | 'no_endpoint' | 'body_removed';
}

const COUNT_UNDELIVERED = `
  select n.environment, n.event_type as "eventType", n.state,
    case when n.event_type = '${TEST_EVENT_TYPE}' then 'test'
      when n.state in ('queued', 'started') then 'under_way'
      when n.state = 'cancelled' then 'cancelled'
      when n.body = '' then 'body_removed'
      when not ${hasActiveEndpoint('n')} then 'no_endpoint'
      else 'send' end as plan, count(*)::int as count
  from notifications_now n where ${inSpan('n')} and n.delivered_at is null group by 1, 2, 3, 4 order by 1, 2, 3, 4`;

/** Counts the undelivered notifications of a span by what a recovery would do with them. */
export const countUndelivered = (reader: Reader, span: RecoverySpan) =>
  runPrepared<UndeliveredCount>(reader, COUNT_UNDELIVERED, spanOf(span));
