import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import { LONGEST_RECOVERY_DAYS } from '../../domain/retention';
import type { Tenant } from '../../domain/tenant';
import { hasActiveEndpoint } from '../endpoints/endpoints';
import { msText, oneRow, runPrepared, type Reader } from '../postgres/connect';
import { Refused } from '../refused';
import { endedStatus } from '../schema';

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

const NOW = `select ${msText('service_now()')} as ms`;

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
  const now = Math.floor((await oneRow<{ ms: number }>(reader, NOW)).ms);
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

// Parameters: partner, environment, since, until. As ids sort by time, the span bounds the reads.
const IN_SPAN = `n.partner_id = $1 and ($2::text is null or n.environment = $2)
  and n.notification_id >= 'ntf_' || ulid_floor($3::text::timestamptz)
  and n.notification_id < 'ntf_' || ulid_floor($4::text::timestamptz) and n.delivered_at is null`;
const spanOf = (span: RecoverySpan) => [span.partnerId, span.environment, span.since, span.until];

// A recovery may send notifications that ended undelivered, found by the index of that status, and held
// ones. Tests have a strict quota, and are resent one by one.
const recoverable = (columns: string) => `
  select ${columns} from notifications n
  where ${IN_SPAN} and n.environment in ('sandbox', 'live') and n.end_state is not null
    and (${endedStatus()}) in ('failed', 'expired') and n.event_type <> '${TEST_EVENT_TYPE}' and n.body <> ''
  union all
  select ${columns} from deliveries d join notifications n using (notification_id)
  where ${IN_SPAN} and d.state = 'held' and d.partner_id = $1 and n.body <> ''`;

const COUNT = `select count(*)::int as count from (${recoverable('1')}) q`;

export const countRecoverable = async (reader: Reader, span: RecoverySpan) =>
  (await oneRow<{ count: number }>(reader, COUNT, spanOf(span))).count;

const LIST = `
  select "notificationId", application, sequence from (
    ${recoverable(`n.notification_id as "notificationId", coalesce(n.application_id, '') collate "C" as application,
      coalesce(n.sequence, 0) as sequence, n.partner_id, n.environment`)}) q
  where (application, sequence, "notificationId") > ($5, $6::int, $7) and ${hasActiveEndpoint('q')}
  order by application, sequence, "notificationId"`;

/** What a recovery has to send, by application and sequence, so that no event overtakes an earlier one. */
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
  from notifications_now n where ${IN_SPAN} group by 1, 2, 3, 4 order by 1, 2, 3, 4`;

/** Counts the undelivered notifications of a span by what a recovery would do with them. */
export const countUndelivered = (reader: Reader, span: RecoverySpan) =>
  runPrepared<UndeliveredCount>(reader, COUNT_UNDELIVERED, spanOf(span));
