import { and, desc, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts, DELIVERY_STATUS_SQL, ENDED_STATUS_SQL } from '../schema';
import type { KeyEnvironment } from '../keys/key';
import type { AttemptSummary } from '../notifications/operator';
import { findEndpoint, type WebhookEndpoint } from './endpoints';

/** Attempts are found through the notifications of their partner: this many of the newest of each kind are looked at. */
const NOTIFICATIONS_LOOKED_AT = 100;

const { answer: _, ...SUMMARY } = getTableColumns(deliveryAttempts);

/**
 * Notifications of a partner and environment that can have had an attempt lately, however many newer ones wait: those that have one of its
 * slots, and the newest that are retried, held or have ended. Each part is a range of an index.
 */
function recentlyTried({ partnerId, environment }: WebhookEndpoint) {
  const own = sql`partner_id = ${partnerId} and environment = ${environment}`;
  const newest = (table: string, status: string, value: string) => sql`(
    select notification_id from ${sql.raw(table)} where ${own} and (${sql.raw(status)}) = ${value}
    order by notification_id desc limit ${NOTIFICATIONS_LOOKED_AT})`;
  const parts = [
    sql`select notification_id from deliveries where ${own} and taken_at is not null`,
    ...['retrying', 'held'].map((status) => newest('deliveries', DELIVERY_STATUS_SQL, status)),
    ...['delivered', 'failed'].map((status) =>
      newest('(select * from notifications where end_state is not null) n', ENDED_STATUS_SQL, status),
    ),
  ];
  return sql`(${sql.join(parts, sql` union `)})`;
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
