import { judgeFailing } from '../../domain/delivery-outcome';
import type { Tenant } from '../../domain/tenant';
import type { OperatorEvent } from '../audit/operator-events';
import { runPrepared, type Reader } from '../postgres/prepared';

/** How an endpoint is after a failure, with that failure. */
export interface EndpointHealth extends Tenant {
  readonly endpointId: string;
  readonly failures: number;
  /** Since the first failure after the last success. */
  readonly hours: number;
  /** Hours of failing that operators have been warned of. */
  readonly warnedHours: number;
  readonly lastSuccessAt: string | null;
}

/** A change of state or warning and its event, together; without the change there is no event. */
const NOTE = `
  with noted as (
    update webhook_endpoints
    set state = case when $2::boolean then 'disabled' else state end, disabled_reason = case when $2 then 'failing' else disabled_reason end,
      updated_at = case when $2 then service_now() else updated_at end, warned_hours = coalesce($3::smallint, warned_hours)
    where endpoint_id = $1 and state = 'active' and ($2 or warned_hours < $3::smallint)
    returning 1)
  insert into operator_events (kind, partner_id, environment, endpoint_id, details)
  select $4, $5, $6, $1, $7::text::jsonb from noted returning 1`;

/**
 * What follows for an endpoint from a failure that is no 410: operators are warned of it, or it is disabled, by domain/delivery-outcome.
 * record_attempt has counted the failure; it writes itself what a 410 and a success come to.
 * @returns what operators should know, which has been written down.
 */
export async function noteHealth(
  reader: Reader,
  { endpointId, partnerId, environment, failures, hours, warnedHours, lastSuccessAt }: EndpointHealth,
): Promise<OperatorEvent | null> {
  const about = { partnerId, environment, endpointId };
  const known = { hours: Math.floor(hours), failures, last_success_at: lastSuccessAt };
  const verdict = judgeFailing({ hours, failures, warnedHours });
  if (verdict === null) return null;
  return verdict.kind === 'disable'
    ? note({ kind: 'endpoint_disabled', ...about, details: { reason: 'failing', ...known } }, null)
    : note({ kind: 'endpoint_failing', ...about, details: known }, verdict.hours);

  /** @param warnedOf hours; null: it is disabled. */
  async function note(event: OperatorEvent, warnedOf: number | null) {
    const written = [
      endpointId,
      warnedOf === null,
      warnedOf,
      event.kind,
      partnerId,
      environment,
      JSON.stringify(event.details),
    ];
    return (await runPrepared(reader, NOTE, written)).length > 0 ? event : null;
  }
}
