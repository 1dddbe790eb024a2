import { and, eq, sql } from 'drizzle-orm';
import { judgeFailing } from '../../domain/endpoint-health';
import type { DbOrTransaction } from '../postgres/connect';
import { webhookEndpoints } from '../schema';
import { appendOperatorEvents, type OperatorEvent } from '../audit/operator-events';

/**
 * True in SQL when a success has to be written to its endpoint `e`: it was failing, or its last success is a minute old.
 * Everything else would make one row of every delivery's way.
 */
export const SUCCESS_IS_NEWS_TEXT = `(e.failing_since is not null
  or coalesce(e.last_success_at < service_now() - interval '1 minute', true))`;
export const SUCCESS_IS_NEWS = sql.raw(SUCCESS_IS_NEWS_TEXT);

/**
 * Notes that an endpoint answered 2xx: it is well again. Call it last in a transaction: it locks the endpoint's row.
 * @returns the event that ends a warning.
 */
export async function noteSuccess(tx: DbOrTransaction, endpointId: string): Promise<OperatorEvent | null> {
  const [row] = await tx.execute<Health>(sql`
    with e as (
      select * from webhook_endpoints where endpoint_id = ${endpointId} and state = 'active' for no key update)
    update webhook_endpoints w
    set last_success_at = service_now(), failing_since = null, failures_since_success = 0, warned_hours = 0
    from e where w.endpoint_id = e.endpoint_id and ${SUCCESS_IS_NEWS}
    returning ${healthOf('e')}`);
  if (row === undefined || row.warnedHours === 0) return null;
  const { partnerId, environment, hours, failures } = row;
  const event = {
    kind: 'endpoint_recovered',
    partnerId,
    environment,
    endpointId,
    details: { hours: Math.floor(hours), failures },
  } as const;
  await appendOperatorEvents(tx, [event]);
  return event;
}

/**
 * Notes that an endpoint did not answer 2xx, and disables it when that is enough: at once for a 410 (`gone`), else by
 * domain/endpoint-health. Call it last in a transaction: it locks the endpoint's row. Nothing happens to one that is
 * disabled or removed already.
 * @returns what operators should know, which has been written down.
 */
export async function noteFailure(
  tx: DbOrTransaction,
  endpointId: string,
  { gone }: { gone: boolean },
): Promise<OperatorEvent | null> {
  const [row] = await tx.execute<Health>(sql`
    update webhook_endpoints w
    set failing_since = coalesce(failing_since, service_now()), failures_since_success = failures_since_success + 1
    where endpoint_id = ${endpointId} and state = 'active'
    returning ${healthOf('w')}`);
  if (row === undefined) return null;
  const verdict = gone ? ({ kind: 'disable' } as const) : judgeFailing(row);
  if (verdict === null) return null;
  const { partnerId, environment, failures } = row;
  const reason = gone ? 'gone' : 'failing';
  await tx
    .update(webhookEndpoints)
    .set(
      verdict.kind === 'disable'
        ? { state: 'disabled', disabledReason: reason, updatedAt: sql`service_now()` }
        : { warnedHours: verdict.hours },
    )
    .where(and(eq(webhookEndpoints.endpointId, endpointId), eq(webhookEndpoints.state, 'active')));
  const event: OperatorEvent = {
    kind: verdict.kind === 'disable' ? 'endpoint_disabled' : 'endpoint_failing',
    partnerId,
    environment,
    endpointId,
    details: {
      ...(verdict.kind === 'disable' && { reason }),
      hours: Math.floor(row.hours),
      failures,
      last_success_at: row.lastSuccessAt,
    },
  };
  await appendOperatorEvents(tx, [event]);
  return event;
}

type Health = {
  partnerId: string;
  environment: 'sandbox' | 'live';
  hours: number;
  failures: number;
  warnedHours: number;
  lastSuccessAt: string | null;
};

const healthOf = (table: 'e' | 'w') => {
  const t = sql.raw(table);
  return sql`${t}.partner_id as "partnerId", ${t}.environment, ${t}.warned_hours::int as "warnedHours",
    ${t}.failures_since_success as failures,
    coalesce(extract(epoch from service_now() - ${t}.failing_since) / 3600, 0)::float8 as hours,
    to_char(${t}.last_success_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') as "lastSuccessAt"`;
};
