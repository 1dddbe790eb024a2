import type { Tenant } from '../../domain/tenant';
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import type { KeyEnvironment } from '../keys/key';
import { Refused } from '../refused';
import { webhookKeyPairs } from '../schema';
import { given, isLive } from '../schema/columns';
import { generateKeyPair } from './key-pair';
import type { KeyRing } from './key-ring';
import { checkOverlap, MOST_LIVE } from '../overlap';

/** A key pair as stored: the private key sealed, and bound to its owner and its public key. */
export type SealedKeyPair = Readonly<typeof webhookKeyPairs.$inferSelect>;

/** A public key that deliveries are signed under now. */
export type PublicKey = Pick<SealedKeyPair, 'keyPairId' | 'environment' | 'publicKey' | 'expiresAt'>;

const isOf = ({ partnerId, environment }: Tenant) =>
  and(eq(webhookKeyPairs.partnerId, partnerId), eq(webhookKeyPairs.environment, environment));
const newestFirst = [desc(webhookKeyPairs.createdAt), desc(webhookKeyPairs.keyPairId)];

/** The key pairs that sign now, newest first. */
export async function liveKeyPairs(db: DbOrTransaction, owner: Tenant): Promise<SealedKeyPair[]> {
  return db
    .select()
    .from(webhookKeyPairs)
    .where(and(isOf(owner), isLive(webhookKeyPairs.expiresAt)))
    .orderBy(...newestFirst);
}

/** Of these the public half, which is all that an API process may read. */
export async function livePublicKeys(db: DbOrTransaction, owner: Tenant): Promise<PublicKey[]> {
  const { keyPairId, environment, publicKey, expiresAt } = webhookKeyPairs;
  return db
    .select({ keyPairId, environment, publicKey, expiresAt })
    .from(webhookKeyPairs)
    .where(and(isOf(owner), isLive(webhookKeyPairs.expiresAt)))
    .orderBy(...newestFirst);
}

/**
 * Makes the key pair of a partner and environment, unless there is one. Call it where two of the same cannot run at once.
 * @returns its id; null when there was one.
 */
export async function ensureKeyPair(
  tx: DbOrTransaction,
  owner: Tenant,
  keyRing: Pick<KeyRing, 'seal'>,
): Promise<string | null> {
  const [found] = await livePublicKeys(tx, owner);
  return found === undefined ? (await addKeyPair(tx, owner, keyRing)).keyPairId : null;
}

/**
 * Adds a key pair. The present ones sign on for the overlap, each delivery with all of them: a receiver that still has the list of
 * before verifies one signature, and a receiver that has read it since another. An earlier end of their own stands.
 * @param wanted.overlapSeconds 0 (a private key leaked: the old ones end now) to 7 days.
 * @throws Refused when there is no key pair yet, or three would outlive the overlap's start.
 */
export async function rotateKeyPair(
  tx: DbOrTransaction,
  owner: Tenant,
  wanted: { readonly overlapSeconds: number; readonly keyRing: Pick<KeyRing, 'seal'> },
): Promise<{ readonly keyPairId: string; readonly publicKey: string; readonly live: readonly PublicKey[] }> {
  const { overlapSeconds, keyRing } = wanted;
  checkOverlap(overlapSeconds);
  const { partnerId, environment } = owner;
  // Locked, so that two rotations take turns.
  const there = await tx
    .select({ keyPairId: webhookKeyPairs.keyPairId })
    .from(webhookKeyPairs)
    .where(isOf(owner))
    .for('update');
  if (there.length === 0) {
    const why = 'it is made when an endpoint is registered';
    throw new Refused('not_found', `${partnerId} has no ${environment} key pair: ${why}.`);
  }
  await tx
    .update(webhookKeyPairs)
    .set({
      expiresAt: sql`least(${webhookKeyPairs.expiresAt}, service_now() + make_interval(secs => ${overlapSeconds}::float8))`,
    })
    .where(isOf(owner));
  const before = await livePublicKeys(tx, owner);
  if (before.length >= MOST_LIVE) {
    throw new Refused(
      'conflict',
      `${before.length} ${environment} key pairs of ${partnerId} are alive; at most ${MOST_LIVE} may be. Wait for one to end, or use --overlap 0.`,
    );
  }
  const added = await addKeyPair(tx, owner, keyRing);
  return { ...added, live: await livePublicKeys(tx, owner) };
}

async function addKeyPair(tx: DbOrTransaction, owner: Tenant, keyRing: Pick<KeyRing, 'seal'>) {
  const { partnerId, environment } = owner;
  const { publicKey, privateKey } = generateKeyPair();
  const place = { partnerId, environment, keyPairId: `whk_${ulid()}`, publicKey };
  const { keyId, ciphertext } = keyRing.seal(privateKey, place);
  await tx.insert(webhookKeyPairs).values({ ...place, keyId, ciphertext: Buffer.from(ciphertext) });
  return { keyPairId: place.keyPairId, publicKey };
}

/** A key pair as people see it: never the private key. */
export type KeyPairSummary = Omit<SealedKeyPair, 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

/** All key pairs, those that have ended too, newest first for each partner and environment. */
export async function listKeyPairs(
  db: DbOrTransaction,
  filter: { readonly partnerId?: string | undefined; readonly environment?: KeyEnvironment | undefined },
): Promise<KeyPairSummary[]> {
  const { keyPairId, partnerId, environment, publicKey, keyId, createdAt, expiresAt } = webhookKeyPairs;
  const live = isLive(expiresAt);
  return db
    .select({ keyPairId, partnerId, environment, publicKey, keyId, createdAt, expiresAt, live })
    .from(webhookKeyPairs)
    .where(and(given(partnerId, filter.partnerId), given(environment, filter.environment)))
    .orderBy(asc(partnerId), asc(environment), ...newestFirst);
}
