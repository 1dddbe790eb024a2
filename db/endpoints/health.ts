import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { judgeFailing } from '../../domain/endpoint-health';
import type { Tenant } from '../../domain/tenant';
import type { OperatorEvent } from '../audit/operator-events';
import { runPrepared, type Reader } from '../postgres/prepared';

/** How an endpoint is: after a failure with that failure, after a success as it was before. */
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
    returning 1),
  told as (select 1 from noted union all select 1 where not $2 and $3 is null)
  insert into operator_events (kind, partner_id, environment, endpoint_id, details)
  select $4, $5, $6, $1, $7::text::jsonb from told returning 1`;

/**
 * What follows for an endpoint from the outcome of an attempt: operators are warned of it, it is disabled by domain/endpoint-health, or
 * a warning has ended. record_attempt has counted the failure or noted the success, and has disabled one that answered 410 (`gone`).
 * @returns what operators should know, which has been written down.
 */
export async function noteHealth(
  reader: Reader,
  { endpointId, partnerId, environment, failures, hours, warnedHours, lastSuccessAt }: EndpointHealth,
  outcome: DeliveryOutcome,
): Promise<OperatorEvent | null> {
  const about = { partnerId, environment, endpointId };
  const details = { hours: Math.floor(hours), failures };
  if (outcome.kind === 'delivered')
    return warnedHours === 0 ? null : note({ kind: 'endpoint_recovered', ...about, details }, {});
  const known = { ...details, last_success_at: lastSuccessAt };
  const disabled = (reason: 'gone' | 'failing') =>
    ({ kind: 'endpoint_disabled', ...about, details: { reason, ...known } }) as const;
  if (outcome.failure === 'gone') return note(disabled('gone'), {});
  const verdict = judgeFailing({ hours, failures, warnedHours });
  if (verdict === null) return null;
  if (verdict.kind === 'disable') return note(disabled('failing'), { disable: true });
  return note({ kind: 'endpoint_failing', ...about, details: known }, { warnedOf: verdict.hours });

  async function note(event: OperatorEvent, { disable = false, warnedOf = null as number | null }) {
    const written = [
      endpointId,
      disable,
      warnedOf,
      event.kind,
      partnerId,
      environment,
      JSON.stringify(event.details),
    ];
    return (await runPrepared(reader, NOTE, written)).length > 0 ? event : null;
  }
}
