import { ulid } from 'ulid';
import { judgeFailing } from '../../domain/delivery-outcome';
import type { Tenant } from '../../domain/tenant';
import type { OperatorEvent } from '../audit/operator-events';
import { columns, firstRow, msText, rowsOf, runPrepared } from '../postgres/connect';
import type { DbOrTransaction, Reader } from '../postgres/connect';
import { Refused } from '../refused';
import type { webhookEndpoints } from '../schema';
import { deliveryStatus } from '../schema/deliveries';
import { ensureKeyPair } from './key-pairs';
import type { KeyRing } from './key-ring';
import { addSecret } from './secrets';

/** Channel on which the trigger notify_endpoint tells keepers of a new or changed endpoint. */
export const ENDPOINTS_CHANNEL = 'endpoints';

export type WebhookEndpoint = typeof webhookEndpoints.$inferSelect;

const COLUMNS = `endpoint_id, partner_id, environment, url, state, disabled_reason, last_success_at, failing_since,
  failures_since_success, warned_hours, surplus_at, created_at, updated_at`;
const SELECT = `select ${columns('e', COLUMNS)} from webhook_endpoints e`;

interface NewEndpoint extends Tenant {
  readonly url: string;
  readonly secret: string;
  readonly keyRing: Pick<KeyRing, 'seal'>;
  readonly replace: boolean;
}

const REMOVE = `update webhook_endpoints set state = 'removed', updated_at = service_now() where endpoint_id = $1`;
const INSERT =
  'insert into webhook_endpoints (endpoint_id, partner_id, environment, url) values ($1, $2, $3, $4)';

/**
 * Registers the endpoint of a partner and environment, and makes their key pair when there is none. A
 * replaced endpoint is removed with its secrets, so that whoever reads the new address does not learn
 * them. The key pair stays, because receivers have only its public half.
 * @returns `newKeyPairId`: null unless a key pair was made
 * @throws Refused when the partner does not exist, or there is an endpoint and `replace` is false
 */
export async function registerEndpoint(
  tx: DbOrTransaction,
  { partnerId, environment, url, secret, keyRing, replace }: NewEndpoint,
) {
  // The lock keeps two registrations apart.
  const lock = 'select 1 from partners where partner_id = $1 for update';
  const partner = await runPrepared(tx, lock, [partnerId]);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  const old = await findEndpoint(tx, partnerId, environment);
  if (old !== null && !replace)
    throw new Refused(
      'conflict',
      `${partnerId} has a ${environment} endpoint already, ${old.endpointId}: add --replace to put this in its place.`,
    );
  if (old !== null) await runPrepared(tx, REMOVE, [old.endpointId]);
  const endpointId = `whe_${ulid()}`;
  await runPrepared(tx, INSERT, [endpointId, partnerId, environment, url]);
  const secretId = await addSecret(tx, endpointId, (place) => keyRing.seal(secret, place));
  const newKeyPairId = await ensureKeyPair(tx, { partnerId, environment }, keyRing);
  return { endpoint: await existingEndpoint(tx, endpointId), secretId, newKeyPairId, replaced: old };
}

const CURRENT = `${SELECT} where e.partner_id = $1 and e.environment = $2 and e.state <> 'removed'`;

export const findEndpoint = (db: DbOrTransaction, partnerId: string, environment: Tenant['environment']) =>
  firstRow<WebhookEndpoint>(db, CURRENT, [partnerId, environment]);

/** A row for a statement whose first parameters are a partner and an environment. */
export const TENANT = '(values ($1::text, $2::text)) tenant (partner_id, environment)';

// What a partner sees of an endpoint, all null without one. `disabledAt` is that of its reason.
type PartnerEndpoint = Pick<WebhookEndpoint, 'disabledReason' | 'failingSince' | 'lastSuccessAt'> & {
  readonly state: 'active' | 'disabled' | 'none';
  readonly url: string | null;
  readonly disabledAt: Date | null;
  /** MOST_HELD + 1 when there are more. */
  readonly held: number;
};

/** What a partner is told at most, so that it cannot have a million rows counted. */
export const MOST_HELD = 10_000;

const FOR_PARTNER = `
  select coalesce(e.state, 'none') as state, ${columns('e', 'url, disabled_reason, failing_since, last_success_at')},
    case when e.state = 'disabled' then ${msText('e.updated_at')} end as "disabledAt",
    (select count(*)::int from (
      select from deliveries d where d.partner_id = $1 and d.environment = $2 and (${deliveryStatus('d.')}) = 'held'
      limit ${MOST_HELD + 1}) h) as held
  from ${TENANT}
  left join webhook_endpoints e
    on e.partner_id = tenant.partner_id and e.environment = tenant.environment and e.state <> 'removed'`;

export const findEndpointForPartner = async (reader: Reader, { partnerId, environment }: Tenant) =>
  (await firstRow<PartnerEndpoint>(reader, FOR_PARTNER, [partnerId, environment])) as PartnerEndpoint;

export const hasActiveEndpoint = (t: string) => `exists (
  select 1 from webhook_endpoints e
  where e.partner_id = ${t}.partner_id and e.environment = ${t}.environment and e.state = 'active')`;

const IS_ACTIVE = `select 1 from ${TENANT} where ${hasActiveEndpoint('tenant')}`;

/** Whether there is an active endpoint, of which API processes may read no more. */
export const activeEndpointExists = async (db: DbOrTransaction, { partnerId, environment }: Tenant) =>
  (await runPrepared(db, IS_ACTIVE, [partnerId, environment])).length > 0;

export const noActiveEndpoint = ({ partnerId, environment }: Tenant) =>
  new Refused(
    'conflict',
    `${partnerId} has no active ${environment} endpoint: create or enable one first (ops webhooks).`,
    'no_endpoint',
  );

export async function existingEndpoint(db: DbOrTransaction, endpointId: string): Promise<WebhookEndpoint> {
  const row = await firstRow<WebhookEndpoint>(db, `${SELECT} where e.endpoint_id = $1`, [endpointId]);
  if (row === null) throw new Refused('not_found', `Endpoint ${endpointId} does not exist.`);
  return row;
}

const LIST = `
  ${SELECT} where ($1::text is null or e.partner_id = $1) and ($2::boolean or e.state <> 'removed')
    and (not $3::boolean or e.state = 'disabled' or e.failing_since is not null)
  order by e.partner_id, e.environment, e.created_at desc`;

interface EndpointFilter {
  readonly partnerId?: string;
  readonly removed: boolean;
  /** Only disabled ones, and those that have only failed lately. */
  readonly troubled?: boolean;
}

export const listEndpoints = (db: DbOrTransaction, of: EndpointFilter) =>
  rowsOf<WebhookEndpoint>(db, LIST, [of.partnerId ?? null, of.removed, of.troubled ?? false]);

// An enabled endpoint starts with a clean record. A disabled one keeps its record for operators.
const SET_STATE = `
  update webhook_endpoints
  set state = $2, disabled_reason = $3, updated_at = service_now(),
    failing_since = case when $2 <> 'active' then failing_since end,
    failures_since_success = case when $2 <> 'active' then failures_since_success else 0 end,
    warned_hours = case when $2 <> 'active' then warned_hours else 0 end
  where endpoint_id = $1`;

/**
 * Disables or enables an endpoint. The reason of an operator replaces that of the service, which ends
 * the alert.
 * @throws Refused when the endpoint was removed
 */
export async function setEndpointState(
  tx: DbOrTransaction,
  endpointId: string,
  wanted: { state: 'active' } | { state: 'disabled'; reason: 'operator' | 'gone' | 'failing' },
): Promise<{ changed: boolean; was: WebhookEndpoint; endpoint: WebhookEndpoint }> {
  await runPrepared(tx, 'select 1 from webhook_endpoints where endpoint_id = $1 for update', [endpointId]);
  const old = await existingEndpoint(tx, endpointId);
  if (old.state === 'removed')
    throw new Refused('conflict', `Endpoint ${endpointId} was removed: create one instead.`);
  const reason = wanted.state === 'disabled' ? wanted.reason : null;
  if (old.state === wanted.state && (reason === old.disabledReason || reason !== 'operator'))
    return { changed: false, was: old, endpoint: old };
  await runPrepared(tx, SET_STATE, [endpointId, wanted.state, reason]);
  return { changed: true, was: old, endpoint: await existingEndpoint(tx, endpointId) };
}

const SURPLUS = `
  update webhook_endpoints set surplus_at = service_now()
  where endpoint_id = $1 and (surplus_at is null or surplus_at < service_now() - interval '1 hour')
  returning 1`;

/**
 * Notes that an endpoint has sent bytes that belong to no request (outbound/exchange.ts), at most once an
 * hour. open_attempt reports it to all workers for a day.
 * @returns whether it was noted now
 */
export const noteSurplus = async (reader: Reader, endpointId: string) =>
  (await runPrepared(reader, SURPLUS, [endpointId])).length > 0;

export interface EndpointHealth extends Tenant {
  readonly endpointId: string;
  readonly failures: number;
  readonly hours: number;
  readonly warnedHours: number;
  readonly lastSuccessAt: string | null;
}

// State or warning and the event are written together, so that there is no event without a change.
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
 * Decides what a failure other than a 410 means for its endpoint (domain/delivery-outcome.ts):
 * operators are warned, or it is disabled. record_attempt has counted the failure.
 * @returns the stored operator event, if any
 */
export async function noteHealth(
  reader: Reader,
  { endpointId, partnerId, environment, failures, hours, warnedHours, lastSuccessAt }: EndpointHealth,
): Promise<OperatorEvent | null> {
  const verdict = judgeFailing({ hours, failures, warnedHours });
  if (verdict === null) return null;
  const about = { partnerId, environment, endpointId };
  const known = { hours: Math.floor(hours), failures, last_success_at: lastSuccessAt };
  const disable = verdict.kind === 'disable';
  const event: OperatorEvent = disable
    ? { kind: 'endpoint_disabled', ...about, details: { reason: 'failing', ...known } }
    : { kind: 'endpoint_failing', ...about, details: known };
  const warnedOf = disable ? null : verdict.hours;
  const details = JSON.stringify(event.details);
  const written = [endpointId, disable, warnedOf, event.kind, partnerId, environment, details];
  return (await runPrepared(reader, NOTE, written)).length > 0 ? event : null;
}
