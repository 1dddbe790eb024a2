import { eq, sql, type SQL } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../connect';
import { generateKey, hashKey, type KeyEnvironment } from '../keys';
import { apiKeys } from '../schema';
import { findKey, type ApiKeySummary } from './api-keys';
import { Refused } from './refused';

/** A key at the only moment it can be seen. */
export interface IssuedKey {
  /** The key itself: hand it over, never log it. */
  readonly key: string;
  readonly summary: ApiKeySummary;
}

/** A replaced key lives on for a day, so that a partner can roll out the new one without an outage. */
export const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
export const LONGEST_OVERLAP_SECONDS = 7 * 24 * 3600;

const inSeconds = (seconds: number): SQL => sql`service_now() + make_interval(secs => ${seconds}::float8)`;

/**
 * Issues a key. An inactive partner may have one; it answers 401 until the partner is active.
 * @param expiresInSeconds life of the key by the database's clock; null: no end.
 */
export async function issueKey(
  db: DbOrTransaction,
  wanted: { partnerId: string; environment: KeyEnvironment; expiresInSeconds: number | null },
): Promise<IssuedKey> {
  const { partnerId, environment, expiresInSeconds } = wanted;
  if (expiresInSeconds !== null && !(expiresInSeconds > 0)) {
    throw new Refused('invalid', 'A key must expire in the future.');
  }
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
    expiresAt: expiresInSeconds === null ? null : inSeconds(expiresInSeconds),
  });
  return { key, summary: await existing(db, keyId) };
}

/**
 * Issues a successor, and lets the old key live for the overlap; an earlier expiry of its own stands. Only an active,
 * unexpired key that has no successor yet can be rotated.
 */
export async function rotateKey(
  db: DbOrTransaction,
  wanted: { keyId: string; overlapSeconds?: number },
): Promise<IssuedKey & { readonly replaced: ApiKeySummary }> {
  const { keyId, overlapSeconds = DEFAULT_OVERLAP_SECONDS } = wanted;
  if (!(overlapSeconds >= 0 && overlapSeconds <= LONGEST_OVERLAP_SECONDS)) {
    throw new Refused('invalid', 'The overlap must be between 0 and 7 days.');
  }
  return db.transaction(async (tx) => {
    const old = await lockedKey(tx, keyId);
    if (old.state !== 'active')
      throw new Refused('conflict', `Key ${keyId} is ${old.state}: only an active key rotates.`);
    if (old.expired) throw new Refused('conflict', `Key ${keyId} has expired: issue a new one.`);
    if (old.replacedBy !== null) {
      throw new Refused(
        'conflict',
        `Key ${keyId} was already replaced by ${old.replacedBy}: rotate that one.`,
      );
    }
    const { partnerId, environment } = old;
    const issued = await issueKey(tx, { partnerId, environment, expiresInSeconds: null });
    await tx
      .update(apiKeys)
      .set({
        expiresAt: sql`least(${apiKeys.expiresAt}, ${inSeconds(overlapSeconds)})`,
        replacedBy: issued.summary.keyId,
      })
      .where(eq(apiKeys.keyId, keyId));
    return { ...issued, replaced: await existing(tx, keyId) };
  });
}

/** Revokes for good; again is no change. */
export async function revokeKey(
  db: DbOrTransaction,
  keyId: string,
): Promise<{ changed: boolean; summary: ApiKeySummary }> {
  return db.transaction(async (tx) => {
    const old = await lockedKey(tx, keyId);
    if (old.state === 'revoked') return { changed: false, summary: old };
    await tx
      .update(apiKeys)
      .set({ state: 'revoked', revokedAt: sql`service_now()` })
      .where(eq(apiKeys.keyId, keyId));
    return { changed: true, summary: await existing(tx, keyId) };
  });
}

/** Switches a key off or on again; a revoked one stays revoked. */
export async function setKeyState(
  db: DbOrTransaction,
  keyId: string,
  state: 'active' | 'inactive',
): Promise<{ changed: boolean; summary: ApiKeySummary }> {
  return db.transaction(async (tx) => {
    const old = await lockedKey(tx, keyId);
    if (old.state === 'revoked')
      throw new Refused('conflict', `Key ${keyId} is revoked, and stays so: issue a new one.`);
    if (old.state === state) return { changed: false, summary: old };
    await tx.update(apiKeys).set({ state }).where(eq(apiKeys.keyId, keyId));
    return { changed: true, summary: await existing(tx, keyId) };
  });
}

async function lockedKey(tx: DbOrTransaction, keyId: string): Promise<ApiKeySummary> {
  await tx.execute(sql`select 1 from api_keys where key_id = ${keyId} for update`);
  return existing(tx, keyId);
}

async function existing(db: DbOrTransaction, keyId: string): Promise<ApiKeySummary> {
  const found = await findKey(db, keyId);
  if (found === null) throw new Refused('not_found', `Key ${keyId} does not exist.`);
  return found;
}
