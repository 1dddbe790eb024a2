import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import { columns, rowsOf, runPrepared } from '../postgres/prepared';
import type { KeyEnvironment } from '../keys/key';
import type { webhookEndpoints, webhookSecrets } from '../schema';
import { Refused } from '../refused';
import { ensureKeyPair } from './key-pairs';
import type { KeyRing, Sealed } from './key-ring';

/** Channel on which keepers hear that an endpoint has come or gone (trigger notify_endpoint). */
export const ENDPOINTS_CHANNEL = 'endpoints';

export type WebhookEndpoint = typeof webhookEndpoints.$inferSelect;

/** A secret as stored: sealed, and bound to its endpoint and its own id. */
export type SealedSecret = Readonly<typeof webhookSecrets.$inferSelect>;

const SELECT = `select ${columns('e', [
  'endpoint_id',
  'partner_id',
  'environment',
  'url',
  'state',
  'disabled_reason',
  'last_success_at',
  'failing_since',
  'failures_since_success',
  'warned_hours',
  'created_at',
  'updated_at',
])} from webhook_endpoints e`;

/** Where it is to be sent, and the secret that its deliveries are signed with. */
interface NewEndpoint {
  readonly partnerId: string;
  readonly environment: KeyEnvironment;
  readonly url: string;
  /** `whsec_…`, new. */
  readonly secret: string;
  /** Seals it, and the private key. */
  readonly keyRing: Pick<KeyRing, 'seal'>;
}

/** Seals a new secret for the ids it is stored under. */
export type SealSecret = (place: { readonly endpointId: string; readonly secretId: string }) => Sealed;

const REMOVE = `update webhook_endpoints set state = 'removed', updated_at = service_now() where endpoint_id = $1`;
const INSERT =
  'insert into webhook_endpoints (endpoint_id, partner_id, environment, url) values ($1, $2, $3, $4)';

/**
 * Registers the endpoint of a partner and environment, whose key pair is made with the first one. One that is there is replaced when
 * that is wanted, with its secrets: who may read a new address must not be given what signs for the old one. The key pair stays: what
 * receivers have of it signs nothing.
 * @throws Refused when the partner does not exist, or there is an endpoint and `replace` is false.
 */
export async function registerEndpoint(
  tx: DbOrTransaction,
  wanted: NewEndpoint & { readonly replace: boolean },
): Promise<{
  endpoint: WebhookEndpoint;
  secretId: string;
  /** Of the key pair, when it was made now. */
  newKeyPairId: string | null;
  replaced: WebhookEndpoint | null;
}> {
  const { partnerId, environment, url, secret, keyRing, replace } = wanted;
  // Locked, so that two registrations take turns.
  const partner = await runPrepared(tx, 'select 1 from partners where partner_id = $1 for update', [
    partnerId,
  ]);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  const old = await findEndpoint(tx, partnerId, environment);
  if (old !== null && !replace) {
    throw new Refused(
      'conflict',
      `${partnerId} has a ${environment} endpoint already, ${old.endpointId}: add --replace to put this in its place.`,
    );
  }
  if (old !== null) await runPrepared(tx, REMOVE, [old.endpointId]);
  const endpointId = `whe_${ulid()}`;
  await runPrepared(tx, INSERT, [endpointId, partnerId, environment, url]);
  const secretId = await addSecret(tx, endpointId, (place) => keyRing.seal(secret, place));
  const newKeyPairId = await ensureKeyPair(tx, { partnerId, environment }, keyRing);
  return { endpoint: await existingEndpoint(tx, endpointId), secretId, newKeyPairId, replaced: old };
}

/** Stores a new secret of an endpoint; returns its id. */
export async function addSecret(tx: DbOrTransaction, endpointId: string, seal: SealSecret): Promise<string> {
  const secretId = `whs_${ulid()}`;
  const { keyId, ciphertext } = seal({ endpointId, secretId });
  await runPrepared(tx, INSERT_SECRET, [secretId, endpointId, keyId, Buffer.from(ciphertext)]);
  return secretId;
}

const INSERT_SECRET =
  'insert into webhook_secrets (secret_id, endpoint_id, key_id, ciphertext) values ($1, $2, $3, $4::bytea)';

/** The endpoint of a partner and environment that has not been removed; null when there is none. */
export async function findEndpoint(
  db: DbOrTransaction,
  partnerId: string,
  environment: KeyEnvironment,
): Promise<WebhookEndpoint | null> {
  const text = `${SELECT} where e.partner_id = $1 and e.environment = $2 and e.state <> 'removed'`;
  const [row] = await rowsOf<WebhookEndpoint>(db, text, [partnerId, environment]);
  return row ?? null;
}

/** Whether there is an endpoint to send to. API processes may know no more of it. */
export async function activeEndpointExists(
  db: DbOrTransaction,
  { partnerId, environment }: Pick<WebhookEndpoint, 'partnerId' | 'environment'>,
): Promise<boolean> {
  const text = `select 1 from webhook_endpoints where partner_id = $1 and environment = $2 and state = 'active'`;
  return (await runPrepared(db, text, [partnerId, environment])).length > 0;
}

/** @throws Refused when there is no such endpoint. */
export async function existingEndpoint(db: DbOrTransaction, endpointId: string): Promise<WebhookEndpoint> {
  const [row] = await rowsOf<WebhookEndpoint>(db, `${SELECT} where e.endpoint_id = $1`, [endpointId]);
  if (row === undefined) throw new Refused('not_found', `Endpoint ${endpointId} does not exist.`);
  return row;
}

/** Endpoints, those that were removed only when asked for. */
export async function listEndpoints(
  db: DbOrTransaction,
  filter: { partnerId?: string | undefined; removed: boolean },
): Promise<WebhookEndpoint[]> {
  const text = `${SELECT} where ($1::text is null or e.partner_id = $1) and ($2::boolean or e.state <> 'removed')
    order by e.partner_id, e.environment, e.created_at desc`;
  return rowsOf<WebhookEndpoint>(db, text, [filter.partnerId ?? null, filter.removed]);
}

/** The same, locked until the transaction ends. */
export async function lockEndpoint(tx: DbOrTransaction, endpointId: string): Promise<WebhookEndpoint> {
  await runPrepared(tx, 'select 1 from webhook_endpoints where endpoint_id = $1 for update', [endpointId]);
  return existingEndpoint(tx, endpointId);
}

// Enabled, it begins anew; disabled, its record stays for people to read.
const SET_STATE = `
  update webhook_endpoints
  set state = $2, disabled_reason = $3, updated_at = service_now(),
    failing_since = case when $2 <> 'active' then failing_since end,
    failures_since_success = case when $2 <> 'active' then failures_since_success else 0 end,
    warned_hours = case when $2 <> 'active' then warned_hours else 0 end
  where endpoint_id = $1`;

/**
 * Disables or enables an endpoint; the same again is no change. An operator who disables one that the service has disabled takes it
 * over: nobody is to be alerted of it any more.
 * @throws Refused when it does not exist or was removed.
 */
export async function setEndpointState(
  tx: DbOrTransaction,
  endpointId: string,
  wanted: { state: 'active' } | { state: 'disabled'; reason: 'operator' | 'gone' | 'failing' },
): Promise<{ changed: boolean; endpoint: WebhookEndpoint }> {
  const old = await lockEndpoint(tx, endpointId);
  if (old.state === 'removed') {
    throw new Refused('conflict', `Endpoint ${endpointId} was removed: register one instead.`);
  }
  const reason = wanted.state === 'disabled' ? wanted.reason : null;
  if (old.state === wanted.state && (reason === old.disabledReason || reason !== 'operator')) {
    return { changed: false, endpoint: old };
  }
  await runPrepared(tx, SET_STATE, [endpointId, wanted.state, reason]);
  return { changed: true, endpoint: await existingEndpoint(tx, endpointId) };
}

const LIVE_SECRETS = `
  select ${columns('s', ['secret_id', 'endpoint_id', 'key_id', 'ciphertext', 'created_at', 'expires_at'])}
  from webhook_secrets s where s.endpoint_id = $1 and (s.expires_at is null or s.expires_at > service_now())
  order by s.created_at desc, s.secret_id desc`;

/** The secrets that sign now, newest first. */
export async function liveSecrets(db: DbOrTransaction, endpointId: string): Promise<SealedSecret[]> {
  return rowsOf<SealedSecret>(db, LIVE_SECRETS, [endpointId]);
}
