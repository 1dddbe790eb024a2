import type { Tenant } from '../../domain/tenant';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import { columns, rowsOf, runPrepared } from '../postgres/prepared';
import type { KeyEnvironment } from '../keys/key';
import { Refused } from '../refused';
import type { webhookKeyPairs } from '../schema';
import { generateKeyPair } from './key-pair';
import type { KeyRing } from './key-ring';
import { checkOverlap, MOST_LIVE } from '../overlap';

/** A key pair as stored: the private key sealed, and bound to its owner and its public key. */
export type SealedKeyPair = Readonly<typeof webhookKeyPairs.$inferSelect>;

/** A public key that deliveries are signed under now. */
export type PublicKey = Pick<SealedKeyPair, 'keyPairId' | 'environment' | 'publicKey' | 'expiresAt'>;

const PUBLIC = ['key_pair_id', 'environment', 'public_key', 'expires_at'];
const SUMMARY = [...PUBLIC, 'partner_id', 'key_id', 'created_at'];
const LIVE = '(k.expires_at is null or k.expires_at > service_now())';
const NEWEST_FIRST = 'k.created_at desc, k.key_pair_id desc';
const live = (names: readonly string[]) => `
  select ${columns('k', names)} from webhook_key_pairs k
  where k.partner_id = $1 and k.environment = $2 and ${LIVE} order by ${NEWEST_FIRST}`;

/** The key pairs that sign now, newest first. */
export async function liveKeyPairs(db: DbOrTransaction, owner: Tenant): Promise<SealedKeyPair[]> {
  return rowsOf<SealedKeyPair>(db, live([...SUMMARY, 'ciphertext']), [owner.partnerId, owner.environment]);
}

/** Of these the public half, which is all that an API process may read. */
export async function livePublicKeys(db: DbOrTransaction, owner: Tenant): Promise<PublicKey[]> {
  return rowsOf<PublicKey>(db, live(PUBLIC), [owner.partnerId, owner.environment]);
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

// So that two rotations take turns.
const LOCK = 'select 1 from webhook_key_pairs where partner_id = $1 and environment = $2 for update';
const END = `
  update webhook_key_pairs set expires_at = least(expires_at, service_now() + make_interval(secs => $3::float8))
  where partner_id = $1 and environment = $2`;

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
  const there = await runPrepared(tx, LOCK, [partnerId, environment]);
  if (there.length === 0) {
    const why = 'it is made when an endpoint is registered';
    throw new Refused('not_found', `${partnerId} has no ${environment} key pair: ${why}.`);
  }
  await runPrepared(tx, END, [partnerId, environment, overlapSeconds]);
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

const INSERT = `
  insert into webhook_key_pairs (key_pair_id, partner_id, environment, public_key, key_id, ciphertext)
  values ($1, $2, $3, $4, $5, $6::bytea)`;

async function addKeyPair(tx: DbOrTransaction, owner: Tenant, keyRing: Pick<KeyRing, 'seal'>) {
  const { partnerId, environment } = owner;
  const { publicKey, privateKey } = generateKeyPair();
  const place = { partnerId, environment, keyPairId: `whk_${ulid()}`, publicKey };
  const { keyId, ciphertext } = keyRing.seal(privateKey, place);
  const row = [place.keyPairId, partnerId, environment, publicKey, keyId, Buffer.from(ciphertext)];
  await runPrepared(tx, INSERT, row);
  return { keyPairId: place.keyPairId, publicKey };
}

/** A key pair as people see it: never the private key. */
export type KeyPairSummary = Omit<SealedKeyPair, 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

const LIST = `
  select ${columns('k', SUMMARY)}, ${LIVE} as live from webhook_key_pairs k
  where ($1::text is null or k.partner_id = $1) and ($2::text is null or k.environment = $2)
  order by k.partner_id, k.environment, ${NEWEST_FIRST}`;

/** All key pairs, those that have ended too, newest first for each partner and environment. */
export async function listKeyPairs(
  db: DbOrTransaction,
  filter: { readonly partnerId?: string | undefined; readonly environment?: KeyEnvironment | undefined },
): Promise<KeyPairSummary[]> {
  return rowsOf<KeyPairSummary>(db, LIST, [filter.partnerId ?? null, filter.environment ?? null]);
}
