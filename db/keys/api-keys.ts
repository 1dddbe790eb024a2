import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import type { Tenant } from '../../domain/tenant';
import type { PartnerState } from '../catalogue/partners';
import { columns, rowsOf, type DbOrTransaction, type Reader } from '../postgres/connect';
import { Refused } from '../refused';
import { apiKeys, partners } from '../schema';
import { given, isExpired } from '../schema/columns';
import { keyChanges, newKey, type Issued, type KeySummary } from './key';

type ApiKey = Readonly<typeof apiKeys.$inferSelect>;

export interface ApiKeyRecord extends Pick<
  ApiKey,
  'keyId' | 'partnerId' | 'environment' | 'keyHash' | 'state' | 'expiresAt'
> {
  readonly partnerState: PartnerState;
}

export interface ApiKeySummary extends KeySummary, Pick<ApiKey, 'partnerId' | 'environment'> {
  readonly partnerState: PartnerState;
}

const RECORD = `
  select ${columns('k', 'key_id, partner_id, environment, key_hash, state, expires_at')}, p.state as "partnerState"
  from api_keys k join partners p on p.partner_id = k.partner_id`;

export const loadAllKeys = (db: Reader) => rowsOf<ApiKeyRecord>(db, RECORD, []);

export const loadKeysOfPartner = (db: Reader, partnerId: string) =>
  rowsOf<ApiKeyRecord>(db, `${RECORD} where k.partner_id = $1`, [partnerId]);

/** The key with this hash (`hashKey`), whatever its state. */
export const findKeyByHash = async (db: Reader, hash: Buffer) =>
  (await rowsOf<ApiKeyRecord>(db, `${RECORD} where k.key_hash = $1`, [hash]))[0] ?? null;

const { keyHash: _, ...SHOWN } = getTableColumns(apiKeys);

const summaries = (db: DbOrTransaction) =>
  db
    .select({ ...SHOWN, expired: isExpired(apiKeys.expiresAt), partnerState: partners.state })
    .from(apiKeys)
    .innerJoin(partners, eq(partners.partnerId, apiKeys.partnerId))
    .$dynamic();

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
  const { key, row } = newKey(environment, 'key', expiresInSeconds);
  const partner = await db.execute(sql`select 1 from partners where partner_id = ${partnerId} for share`);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  await db.insert(apiKeys).values({ ...row, partnerId, environment });
  const [summary] = await summaries(db).where(eq(apiKeys.keyId, row.keyId));
  if (summary === undefined) throw new Error(`${row.keyId} was not stored`);
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
