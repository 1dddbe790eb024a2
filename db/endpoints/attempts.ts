import type { Tenant } from '../../domain/tenant';
import { ATTEMPT, type AttemptSummary } from '../notifications/operator';
import type { DbOrTransaction } from '../postgres/connect';
import { rowsOf } from '../postgres/prepared';
import { DELIVERY_STATUS_SQL, ENDED_STATUS_SQL } from '../schema';
import { findEndpoint, type WebhookEndpoint } from './endpoints';

/** Attempts are found through the notifications of their partner: this many of the newest of each kind are looked at. */
const NOTIFICATIONS_LOOKED_AT = 100;

/** More than are under way to one endpoint at a time: its retries fill slots of each worker. */
const SENDS_LOOKED_AT = 100;

const OWN = 'partner_id = $1 and environment = $2';
const newest = (table: string, status: string, value: string) => `(
    select notification_id from ${table} where ${OWN} and (${status}) = '${value}'
    order by notification_id desc limit ${NOTIFICATIONS_LOOKED_AT})`;
const ENDED = '(select * from notifications where end_state is not null) n';

// Notifications that can have had an attempt lately, however many newer ones wait: those that have one of the endpoint's slots, and the
// newest that are retried, held or have ended. Each part is a range of an index.
const LAST = `
  select ${ATTEMPT} from delivery_attempts n
  where n.endpoint_id = $3 and n.notification_id in (
    select notification_id from deliveries where ${OWN} and taken_at is not null
    union ${newest('deliveries', DELIVERY_STATUS_SQL, 'retrying')}
    union ${newest('deliveries', DELIVERY_STATUS_SQL, 'held')}
    union ${newest(ENDED, ENDED_STATUS_SQL, 'delivered')}
    union ${newest(ENDED, ENDED_STATUS_SQL, 'failed')})
  order by n.finished_at is null desc, n.started_at desc, n.attempt_number desc limit $4::int`;

/**
 * The attempts to reach an endpoint that are under way, and the last that have ended, each newest first.
 * @param most ended ones returned.
 */
export async function lastAttempts(
  db: DbOrTransaction,
  { partnerId, environment, endpointId }: WebhookEndpoint,
  most: number,
): Promise<{ readonly underWay: AttemptSummary[]; readonly ended: AttemptSummary[] }> {
  const found = await rowsOf<AttemptSummary>(db, LAST, [
    partnerId,
    environment,
    endpointId,
    SENDS_LOOKED_AT + most,
  ]);
  return {
    underWay: found.filter(({ finishedAt }) => finishedAt === null),
    ended: found.filter(({ finishedAt }) => finishedAt !== null).slice(0, most),
  };
}

/** To judge how fast an endpoint is. */
const ATTEMPTS_REMEMBERED = 10;

/**
 * How an endpoint has answered lately: its last attempts that have ended, newest first.
 * @returns null when the partner has no endpoint in that environment.
 */
export async function endpointHistory(db: DbOrTransaction, { partnerId, environment }: Tenant) {
  const endpoint = await findEndpoint(db, partnerId, environment);
  if (endpoint === null) return null;
  const { ended } = await lastAttempts(db, endpoint, ATTEMPTS_REMEMBERED);
  return {
    endpointId: endpoint.endpointId,
    attempts: ended.flatMap(({ outcome, durationMs }) => (outcome === null ? [] : [{ outcome, durationMs }])),
  };
}
