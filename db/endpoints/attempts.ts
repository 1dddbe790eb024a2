import { and, desc, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts } from '../schema';
import { STATUS_SQL } from '../schema/notifications';
import type { KeyEnvironment } from '../keys/key';
import type { AttemptSummary } from '../notifications/read';
import { findEndpoint, type WebhookEndpoint } from './endpoints';

/** Attempts are found through the notifications of their partner: this many of the newest of each kind are looked at. */
const NOTIFICATIONS_LOOKED_AT = 100;

const { answer: _, ...SUMMARY } = getTableColumns(deliveryAttempts);

/**
 * Notifications of a partner and environment that can have had an attempt lately, however many newer ones wait: those that fill its slots,
 * and the newest that are retried, have ended or are held. Each part is a range of an index.
 */
function recentlyTried({ partnerId, environment }: WebhookEndpoint) {
  const own = sql`select notification_id from notifications where environment = ${environment} and partner_id = ${partnerId}`;
  const newest = ['retrying', 'delivered', 'failed', 'held'].map(
    (status) => sql`(${own} and (${sql.raw(STATUS_SQL)}) = ${status}
      order by notification_id desc limit ${NOTIFICATIONS_LOOKED_AT})`,
  );
  return sql`(${sql.join([sql`${own} and taken_at is not null and state in ('pending', 'started')`, ...newest], sql` union `)})`;
}

/**
 * The attempts to reach an endpoint that are under way, and the last that have ended, each newest first.
 * @param most ended ones returned.
 */
export async function lastAttempts(
  db: DbOrTransaction,
  endpoint: WebhookEndpoint,
  most: number,
): Promise<{ readonly underWay: AttemptSummary[]; readonly ended: AttemptSummary[] }> {
  const found = await db
    .select(SUMMARY)
    .from(deliveryAttempts)
    .where(
      and(
        inArray(deliveryAttempts.notificationId, recentlyTried(endpoint)),
        eq(deliveryAttempts.endpointId, endpoint.endpointId),
      ),
    )
    .orderBy(
      desc(isNull(deliveryAttempts.finishedAt)),
      desc(deliveryAttempts.startedAt),
      desc(deliveryAttempts.attemptNumber),
    )
    .limit(SENDS_LOOKED_AT + most);
  return {
    underWay: found.filter(({ finishedAt }) => finishedAt === null),
    ended: found.filter(({ finishedAt }) => finishedAt !== null).slice(0, most),
  };
}

/** More than are under way to one endpoint at a time: its retries fill slots of each worker. */
const SENDS_LOOKED_AT = 100;

/** To judge how fast an endpoint is. */
const ATTEMPTS_REMEMBERED = 10;

/**
 * How an endpoint has answered lately: its last attempts that have ended, newest first.
 * @returns null when the partner has no endpoint in that environment.
 */
export async function endpointHistory(
  db: DbOrTransaction,
  { partnerId, environment }: { readonly partnerId: string; readonly environment: KeyEnvironment },
) {
  const endpoint = await findEndpoint(db, partnerId, environment);
  if (endpoint === null) return null;
  const { ended } = await lastAttempts(db, endpoint, ATTEMPTS_REMEMBERED);
  return {
    endpointId: endpoint.endpointId,
    attempts: ended.flatMap(({ outcome, durationMs }) => (outcome === null ? [] : [{ outcome, durationMs }])),
  };
}
