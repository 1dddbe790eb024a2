import { and, asc, desc, eq, ne, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { webhookEndpoints, webhookSecrets } from '../schema';
import { given, isLive } from '../schema/columns';
import { Refused } from '../refused';
import { ensureKeyPair } from './key-pairs';
import type { KeyRing, Sealed } from './key-ring';

/** Channel on which keepers hear that an endpoint has come or gone (trigger notify_endpoint). */
export const ENDPOINTS_CHANNEL = 'endpoints';

export type WebhookEndpoint = typeof webhookEndpoints.$inferSelect;

/** A secret as stored: sealed, and bound to its endpoint and its own id. */
export type SealedSecret = Readonly<typeof webhookSecrets.$inferSelect>;

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
  const partner = await tx.execute(sql`select 1 from partners where partner_id = ${partnerId} for update`);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  const old = await findEndpoint(tx, partnerId, environment);
  if (old !== null && !replace) {
    throw new Refused(
      'conflict',
      `${partnerId} has a ${environment} endpoint already, ${old.endpointId}: add --replace to put this in its place.`,
    );
  }
  if (old !== null) {
    await tx
      .update(webhookEndpoints)
      .set({ state: 'removed', updatedAt: sql`service_now()` })
      .where(eq(webhookEndpoints.endpointId, old.endpointId));
  }
  const endpointId = `whe_${ulid()}`;
  await tx.insert(webhookEndpoints).values({ endpointId, partnerId, environment, url });
  const secretId = await addSecret(tx, endpointId, (place) => keyRing.seal(secret, place));
  const newKeyPairId = await ensureKeyPair(tx, { partnerId, environment }, keyRing);
  return { endpoint: await existingEndpoint(tx, endpointId), secretId, newKeyPairId, replaced: old };
}

/** Stores a new secret of an endpoint; returns its id. */
export async function addSecret(tx: DbOrTransaction, endpointId: string, seal: SealSecret): Promise<string> {
  const secretId = `whs_${ulid()}`;
  const { keyId, ciphertext } = seal({ endpointId, secretId });
  await tx
    .insert(webhookSecrets)
    .values({ secretId, endpointId, keyId, ciphertext: Buffer.from(ciphertext) });
  return secretId;
}

const isOf = (partnerId: string, environment: KeyEnvironment) =>
  and(eq(webhookEndpoints.partnerId, partnerId), eq(webhookEndpoints.environment, environment));

/** The endpoint of a partner and environment that has not been removed; null when there is none. */
export async function findEndpoint(
  db: DbOrTransaction,
  partnerId: string,
  environment: KeyEnvironment,
): Promise<WebhookEndpoint | null> {
  const [row] = await db
    .select()
    .from(webhookEndpoints)
    .where(and(isOf(partnerId, environment), ne(webhookEndpoints.state, 'removed')));
  return row ?? null;
}

/** Whether there is an endpoint to send to. API processes may know no more of it. */
export async function activeEndpointExists(
  db: DbOrTransaction,
  { partnerId, environment }: Pick<WebhookEndpoint, 'partnerId' | 'environment'>,
): Promise<boolean> {
  const { state } = webhookEndpoints;
  const rows = await db
    .select({ state })
    .from(webhookEndpoints)
    .where(and(isOf(partnerId, environment), eq(state, 'active')));
  return rows.length > 0;
}

/** @throws Refused when there is no such endpoint. */
export async function existingEndpoint(db: DbOrTransaction, endpointId: string): Promise<WebhookEndpoint> {
  const [row] = await db.select().from(webhookEndpoints).where(eq(webhookEndpoints.endpointId, endpointId));
  if (row === undefined) throw new Refused('not_found', `Endpoint ${endpointId} does not exist.`);
  return row;
}

/** Endpoints, those that were removed only when asked for. */
export async function listEndpoints(
  db: DbOrTransaction,
  filter: { partnerId?: string | undefined; removed: boolean },
): Promise<WebhookEndpoint[]> {
  const { partnerId, environment, state, createdAt } = webhookEndpoints;
  return db
    .select()
    .from(webhookEndpoints)
    .where(and(given(partnerId, filter.partnerId), filter.removed ? undefined : ne(state, 'removed')))
    .orderBy(asc(partnerId), asc(environment), desc(createdAt));
}

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
  await tx.execute(sql`select 1 from webhook_endpoints where endpoint_id = ${endpointId} for update`);
  const old = await existingEndpoint(tx, endpointId);
  if (old.state === 'removed') {
    throw new Refused('conflict', `Endpoint ${endpointId} was removed: register one instead.`);
  }
  const reason = wanted.state === 'disabled' ? wanted.reason : null;
  if (old.state === wanted.state && (reason === old.disabledReason || reason !== 'operator')) {
    return { changed: false, endpoint: old };
  }
  await tx
    .update(webhookEndpoints)
    .set({
      state: wanted.state,
      disabledReason: reason,
      // Enabled, it begins anew; disabled, its record stays for people to read.
      ...(wanted.state === 'active' && { failingSince: null, failuresSinceSuccess: 0, warnedHours: 0 }),
      updatedAt: sql`service_now()`,
    })
    .where(eq(webhookEndpoints.endpointId, endpointId));
  return { changed: true, endpoint: await existingEndpoint(tx, endpointId) };
}

/** The secrets that sign now, newest first. */
export async function liveSecrets(db: DbOrTransaction, endpointId: string): Promise<SealedSecret[]> {
  return db
    .select()
    .from(webhookSecrets)
    .where(and(eq(webhookSecrets.endpointId, endpointId), isLive(webhookSecrets.expiresAt)))
    .orderBy(desc(webhookSecrets.createdAt), desc(webhookSecrets.secretId));
}
