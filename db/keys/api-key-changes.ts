import { sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import { generateKey, hashKey, type KeyEnvironment } from './key';
import { apiKeys } from '../schema';
import { findKey, type ApiKeySummary } from './api-keys';
import { expiryIn, keyChanges, type Issued } from './key-changes';
import { Refused } from '../refused';

/**
 * Issues a key. An inactive partner may have one; it answers 401 until the partner is active.
 * @param wanted.expiresInSeconds life of the key by the database's clock; null: no end.
 */
export async function issueKey(
  db: DbOrTransaction,
  wanted: { partnerId: string; environment: KeyEnvironment; expiresInSeconds: number | null },
): Promise<Issued<ApiKeySummary>> {
  const { partnerId, environment, expiresInSeconds } = wanted;
  const expiresAt = expiryIn(expiresInSeconds);
  const partner = await db.execute(sql`select 1 from partners where partner_id = ${partnerId} for share`);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  const key = generateKey(environment);
  const keyId = `key_${ulid()}`;
  await db.insert(apiKeys).values({
    keyId,
    partnerId,
    environment,
    keyHash: hashKey(key),
    lastFour: key.slice(-4),
    expiresAt,
  });
  const summary = await findKey(db, keyId);
  if (summary === null) throw new Error(`${keyId} is gone as soon as it was issued`);
  return { key, summary };
}

export const {
  rotate: rotateKey,
  revoke: revokeKey,
  setState: setKeyState,
} = keyChanges<ApiKeySummary>({
  table: 'api_keys',
  find: findKey,
  issueSuccessor: (tx, { partnerId, environment }, expiresInSeconds) =>
    issueKey(tx, { partnerId, environment, expiresInSeconds }),
});
