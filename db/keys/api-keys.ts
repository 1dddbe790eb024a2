import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { Tenant } from '../../domain/tenant';
import type { PartnerState } from '../catalogue/partners';
import { type DbOrTransaction, msText, runPrepared, type Reader } from '../postgres/connect';
import { Refused } from '../refused';
import { apiKeys, partners } from '../schema';
import { given, isExpired } from '../schema/columns';
import { expiryIn, generateKey, hashKey, keyChanges, type Issued, type KeySummary } from './key';

type ApiKey = Readonly<typeof apiKeys.$inferSelect>;

/** A key as the API checks it. */
export interface ApiKeyRecord extends Pick<
  ApiKey,
  'keyId' | 'partnerId' | 'environment' | 'keyHash' | 'state' | 'expiresAt'
> {
  readonly partnerState: PartnerState;
}

/** A key as people see it. */
export interface ApiKeySummary extends KeySummary, Pick<ApiKey, 'partnerId' | 'environment'> {
  readonly partnerState: PartnerState;
}

const RECORD = `select k.key_id as "keyId", k.partner_id as "partnerId", k.environment, k.key_hash as "keyHash",
  k.state, ${msText('k.expires_at')} as "expiresAt", p.state as "partnerState"
  from api_keys k join partners p on p.partner_id = k.partner_id`;

const { keyHash: _, ...SHOWN } = getTableColumns(apiKeys);

const summaries = (db: DbOrTransaction) =>
  db
    .select({ ...SHOWN, expired: isExpired(apiKeys.expiresAt), partnerState: partners.state })
    .from(apiKeys)
    .innerJoin(partners, eq(partners.partnerId, apiKeys.partnerId))
    .$dynamic();

type Row = Omit<ApiKeyRecord, 'expiresAt'> & { readonly expiresAt: number | null };

const toRecord = (row: Row): ApiKeyRecord => ({
  ...row,
  expiresAt: row.expiresAt === null ? null : new Date(row.expiresAt),
});

export async function loadAllKeys(db: Reader): Promise<ApiKeyRecord[]> {
  return (await runPrepared<Row>(db, RECORD)).map(toRecord);
}

export async function loadKeysOfPartner(db: Reader, partnerId: string): Promise<ApiKeyRecord[]> {
  return (await runPrepared<Row>(db, `${RECORD} where k.partner_id = $1`, [partnerId])).map(toRecord);
}

/** The key with this hash (`hashKey`), whatever its state. */
export async function findKeyByHash(db: Reader, hash: Buffer): Promise<ApiKeyRecord | null> {
  const [row] = await runPrepared<Row>(db, `${RECORD} where k.key_hash = $1`, [hash]);
  return row === undefined ? null : toRecord(row);
}

/**
 * Keys for people, by partner, newest last. @param filter.after id of the last key of the page before.
 * @throws Refused when there is no such key.
 */
export async function listKeys(
  db: DbOrTransaction,
  filter: { partnerId?: string | undefined; after?: string | undefined; limit: number },
): Promise<ApiKeySummary[]> {
  const { partnerId, keyId } = apiKeys;
  const last = filter.after === undefined ? undefined : await findKey(db, filter.after);
  if (last === null) throw new Refused('not_found', `There is no key ${filter.after}.`);
  const behind = last && sql`(${partnerId}, ${keyId}) > (${last.partnerId}, ${last.keyId})`;
  return summaries(db)
    .where(and(given(partnerId, filter.partnerId), behind))
    .orderBy(asc(partnerId), asc(keyId))
    .limit(filter.limit);
}

export async function findKey(db: DbOrTransaction, keyId: string): Promise<ApiKeySummary | null> {
  const [row] = await summaries(db).where(eq(apiKeys.keyId, keyId));
  return row ?? null;
}

/**
 * Issues a key. An inactive partner may have one; it answers 401 until the partner is active.
 * @param expiresInSeconds life of the key by the database's clock; null: no end.
 */
export async function issueKey(
  db: DbOrTransaction,
  { partnerId, environment, expiresInSeconds }: Tenant & { readonly expiresInSeconds: number | null },
): Promise<Issued<ApiKeySummary>> {
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
