import { desc, eq, sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { webhookSecrets } from '../schema';
import { isLive } from '../schema/columns';
import { Refused } from '../refused';
import { addSecret, existingEndpoint, liveSecrets, type SealedSecret, type SealSecret } from './endpoints';
import { checkOverlap, MOST_LIVE } from '../overlap';

/**
 * Adds a secret and lets the present ones sign on for the overlap; an earlier end of their own stands.
 * @param wanted.overlapSeconds 0 (an emergency: the old ones end now) to 7 days.
 * @throws Refused when the endpoint is missing or removed, or three secrets would outlive the overlap's start.
 */
export async function rotateSecret(
  tx: DbOrTransaction,
  endpointId: string,
  wanted: { overlapSeconds: number; seal: SealSecret },
): Promise<{ secretId: string; live: number }> {
  const { overlapSeconds, seal } = wanted;
  checkOverlap(overlapSeconds);
  await tx.execute(sql`select 1 from webhook_endpoints where endpoint_id = ${endpointId} for update`);
  const { state } = await existingEndpoint(tx, endpointId);
  if (state === 'removed') throw new Refused('conflict', `Endpoint ${endpointId} was removed.`);
  await tx
    .update(webhookSecrets)
    .set({
      expiresAt: sql`least(${webhookSecrets.expiresAt}, service_now() + make_interval(secs => ${overlapSeconds}::float8))`,
    })
    .where(eq(webhookSecrets.endpointId, endpointId));
  const before = await liveSecrets(tx, endpointId);
  if (before.length >= MOST_LIVE) {
    throw new Refused(
      'conflict',
      `${before.length} secrets of ${endpointId} are alive; at most ${MOST_LIVE} may be. Wait for one to end, or use --overlap 0.`,
    );
  }
  const secretId = await addSecret(tx, endpointId, seal);
  return { secretId, live: before.length + 1 };
}

/** A secret as people see it: never the secret. */
export type SecretSummary = Omit<SealedSecret, 'endpointId' | 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

/** All secrets of an endpoint, those that have ended too, newest first. */
export async function listSecrets(db: DbOrTransaction, endpointId: string): Promise<SecretSummary[]> {
  const { secretId, keyId, createdAt, expiresAt } = webhookSecrets;
  const live = isLive(expiresAt);
  return db
    .select({ secretId, keyId, createdAt, expiresAt, live })
    .from(webhookSecrets)
    .where(eq(webhookSecrets.endpointId, endpointId))
    .orderBy(desc(createdAt), desc(secretId));
}
