import { msText, runPrepared, type Reader } from '../postgres/prepared';
import { Refused } from '../refused';
import type { KeyEnvironment } from './key';
import type { KeyState, KeySummary } from './key-changes';

export { hashKey } from './key';

/** A key as the API checks it. */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly partnerId: string;
  readonly environment: KeyEnvironment;
  /** SHA-256 of the whole key. */
  readonly keyHash: Buffer;
  readonly state: KeyState;
  /** From this moment on it answers 401; null: never. */
  readonly expiresAt: Date | null;
  readonly partnerState: 'active' | 'inactive';
}

/** A key as people see it. */
export interface ApiKeySummary extends KeySummary {
  readonly partnerId: string;
  readonly environment: KeyEnvironment;
  readonly partnerState: 'active' | 'inactive';
}

const RECORD = `select k.key_id as "keyId", k.partner_id as "partnerId", k.environment, k.key_hash as "keyHash",
  k.state, ${msText('k.expires_at')} as "expiresAt", p.state as "partnerState"
  from api_keys k join partners p on p.partner_id = k.partner_id`;

const SUMMARY = `select k.key_id as "keyId", k.partner_id as "partnerId", k.environment, k.last_four as "lastFour",
  k.state, coalesce(k.expires_at <= service_now(), false) as expired, ${msText('k.expires_at')} as "expiresAt",
  ${msText('k.created_at')} as "createdAt", ${msText('k.revoked_at')} as "revokedAt", k.replaced_by as "replacedBy",
  p.state as "partnerState"
  from api_keys k join partners p on p.partner_id = k.partner_id`;

type Row<T> = { [K in keyof T]: T[K] extends Date | null ? number | null : T[K] };

const moment = (value: number | null) => (value === null ? null : new Date(value));
const toRecord = (row: Row<ApiKeyRecord>): ApiKeyRecord => ({ ...row, expiresAt: moment(row.expiresAt) });
const toSummary = (row: Row<ApiKeySummary>): ApiKeySummary => ({
  ...row,
  expiresAt: moment(row.expiresAt),
  createdAt: new Date(row.createdAt ?? 0),
  revokedAt: moment(row.revokedAt),
});

export async function loadAllKeys(db: Reader): Promise<ApiKeyRecord[]> {
  return (await runPrepared<Row<ApiKeyRecord>>(db, RECORD)).map(toRecord);
}

export async function loadKeysOfPartner(db: Reader, partnerId: string): Promise<ApiKeyRecord[]> {
  return (await runPrepared<Row<ApiKeyRecord>>(db, `${RECORD} where k.partner_id = $1`, [partnerId])).map(
    toRecord,
  );
}

/** The key with this hash (`hashKey`), whatever its state. */
export async function findKeyByHash(db: Reader, hash: Buffer): Promise<ApiKeyRecord | null> {
  const [row] = await runPrepared<Row<ApiKeyRecord>>(db, `${RECORD} where k.key_hash = $1`, [hash]);
  return row === undefined ? null : toRecord(row);
}

/**
 * Keys for people, by partner, newest last. @param filter.partnerId null: of every partner.
 * @param filter.after id of the last key of the page before. @throws Refused when there is no such key.
 */
export async function listKeys(
  db: Reader,
  filter: { partnerId: string | null; after?: string | undefined; limit: number },
): Promise<ApiKeySummary[]> {
  const { partnerId, after, limit } = filter;
  const last = after === undefined ? null : await findKey(db, after);
  if (after !== undefined && last === null) throw new Refused('not_found', `There is no key ${after}.`);
  const text = `${SUMMARY} where ($1::text is null or k.partner_id = $1)
      and ($2::text is null or (k.partner_id, k.key_id) > ($2, $3))
    order by k.partner_id, k.key_id limit $4::int`;
  const values = [partnerId, last?.partnerId ?? null, last?.keyId ?? null, limit];
  return (await runPrepared<Row<ApiKeySummary>>(db, text, values)).map(toSummary);
}

export async function findKey(db: Reader, keyId: string): Promise<ApiKeySummary | null> {
  const [row] = await runPrepared<Row<ApiKeySummary>>(db, `${SUMMARY} where k.key_id = $1`, [keyId]);
  return row === undefined ? null : toSummary(row);
}
