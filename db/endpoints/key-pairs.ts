import { generateKeyPairSync } from 'node:crypto';
import { ulid } from 'ulid';
import type { Tenant } from '../../domain/tenant';
import { PRIVATE_KEY_PREFIX, PUBLIC_KEY_PREFIX, type SigningPair } from '../../domain/webhook';
import { checkOverlap } from '../keys';
import { type DbOrTransaction, type Reader, columns, rowsOf, runPrepared } from '../postgres/connect';
import { Refused } from '../refused';
import type { webhookKeyPairs } from '../schema';
import type { KeyRing } from './key-ring';
import { refuseFourth } from './secrets';

/** The private key is never shown, and stored only sealed. */
export type KeyPair = SigningPair<string>;

export function generateKeyPair(): KeyPair {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const base64 = (text: string) => Buffer.from(text, 'base64url').toString('base64');
  return { publicKey: PUBLIC_KEY_PREFIX + base64(x), privateKey: PRIVATE_KEY_PREFIX + base64(d) };
}

export type SealedKeyPair = Readonly<typeof webhookKeyPairs.$inferSelect>;

type PublicKey = Pick<SealedKeyPair, 'keyPairId' | 'environment' | 'publicKey' | 'expiresAt'>;

const PUBLIC = 'key_pair_id, environment, public_key, expires_at';
const SUMMARY = `${PUBLIC}, partner_id, key_id, created_at`;
const LIVE = '(k.expires_at is null or k.expires_at > service_now())';
const NEWEST_FIRST = 'k.created_at desc, k.key_pair_id desc';
const live = (names: string) => `
  select ${columns('k', names)} from webhook_key_pairs k
  where k.partner_id = $1 and k.environment = $2 and ${LIVE} order by ${NEWEST_FIRST}`;

export const liveKeyPairs = (db: DbOrTransaction, { partnerId, environment }: Tenant) =>
  rowsOf<SealedKeyPair>(db, live(`${SUMMARY}, ciphertext`), [partnerId, environment]);

/** The public halves, which are all that an API process may read. */
export const livePublicKeys = (db: Reader, { partnerId, environment }: Tenant) =>
  rowsOf<PublicKey>(db, live(PUBLIC), [partnerId, environment]);

/**
 * Makes a partner's key pair unless there is one. The caller's lock keeps a second call out.
 * @returns its id; null when there was one
 */
export async function ensureKeyPair(tx: DbOrTransaction, owner: Tenant, keyRing: Pick<KeyRing, 'seal'>) {
  const [found] = await livePublicKeys(tx, owner);
  return found === undefined ? (await addKeyPair(tx, owner, keyRing)).keyPairId : null;
}

// The lock keeps two rotations apart.
const LOCK = 'select 1 from webhook_key_pairs where partner_id = $1 and environment = $2 for update';
const END = `
  update webhook_key_pairs set expires_at = least(expires_at, service_now() + make_interval(secs => $3::float8))
  where partner_id = $1 and environment = $2`;

/**
 * Adds a key pair. During the overlap each delivery is signed with the new pair and the present ones,
 * so that a receiver can verify it whether or not it has read the list again.
 * @param wanted.overlapSeconds 0 (a private key leaked: the old ones end now) to 7 days
 * @throws Refused when there is no key pair yet, or three would be alive at the start of the overlap
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
  refuseFourth((await livePublicKeys(tx, owner)).length, `${environment} key pairs of ${partnerId}`);
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

export type KeyPairSummary = Omit<SealedKeyPair, 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

const LIST = `
  select ${columns('k', SUMMARY)}, ${LIVE} as live from webhook_key_pairs k
  where ($1::text is null or k.partner_id = $1) and ($2::text is null or k.environment = $2)
  order by k.partner_id, k.environment, ${NEWEST_FIRST}`;

export const listKeyPairs = (db: DbOrTransaction, of: Partial<Tenant>) =>
  rowsOf<KeyPairSummary>(db, LIST, [of.partnerId ?? null, of.environment ?? null]);
