import { createHash, randomInt } from 'node:crypto';
import { and, asc, eq, getTableColumns, sql, type SQL } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { Tenant } from '../domain/tenant';
import type { Partner } from './catalogue/partners';
import { columns, msText, oneRow, rowsOf, runPrepared } from './postgres/connect';
import type { DbOrTransaction, Parameter, Reader } from './postgres/connect';
import { Refused } from './refused';
import { apiKeys, partners } from './schema';
import { given, isExpired } from './schema/columns';

export type KeyEnvironment = Tenant['environment'];

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 32 of 62 characters are 190 bits. They cannot be guessed, so a fast hash without salt is enough. */
const RANDOM_LENGTH = 32;
const PREFIXES = { sandbox: 'sk_test_', live: 'sk_live_', service: 'svc_' } as const;

export function generateKey(opens: KeyEnvironment | 'service'): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => BASE62.charAt(randomInt(BASE62.length)));
  return PREFIXES[opens] + random.join('');
}

export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

/** A new key with its columns. @param prefix of its id, such as `key`. */
export function newKey(opens: KeyEnvironment | 'service', prefix: string, expiresInSeconds: number | null) {
  const key = generateKey(opens);
  const row = { keyId: `${prefix}_${ulid()}`, keyHash: hashKey(key), lastFour: key.slice(-4) };
  return { key, row: { ...row, expiresAt: expiryIn(expiresInSeconds) } };
}

/** An old key, webhook secret or key pair stays valid for a day beside the new one. */
export const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
const LONGEST_OVERLAP_SECONDS = 7 * 24 * 3600;

/** @throws Refused when an overlap is not 0 to 7 days. */
export function checkOverlap(seconds: number): void {
  if (seconds >= 0 && seconds <= LONGEST_OVERLAP_SECONDS) return;
  throw new Refused('invalid', 'The overlap must be between 0 and 7 days.');
}

export interface KeySummary extends Readonly<
  Omit<typeof apiKeys.$inferSelect, 'partnerId' | 'environment' | 'keyHash'>
> {
  readonly expired: boolean;
}

export interface Issued<S extends KeySummary> {
  /** The key itself: hand it over, never log it. */
  readonly key: string;
  readonly summary: S;
}

export interface Changed<S extends KeySummary> {
  readonly changed: boolean;
  readonly was: S['state'];
  readonly summary: S;
}

interface KeyKind<S extends KeySummary> {
  readonly table: 'api_keys' | 'service_keys';
  readonly find: (db: DbOrTransaction, keyId: string) => Promise<S | null>;
  readonly issueSuccessor: (tx: DbOrTransaction, old: S, seconds: number | null) => Promise<Issued<S>>;
}

interface Rotation {
  readonly keyId: string;
  readonly overlapSeconds?: number | undefined;
  /** Life of the successor; absent: as long as the old key's whole life; null: no end. */
  readonly expiresInSeconds?: number | null | undefined;
}

const inSeconds = (seconds: number): SQL => sql`service_now() + make_interval(secs => ${seconds}::float8)`;

/**
 * When a new key expires, by the database's clock; null: never.
 * @throws Refused unless that is in the future
 */
function expiryIn(seconds: number | null): SQL | null {
  if (seconds !== null && !(seconds > 0)) throw new Refused('invalid', 'A key must expire in the future.');
  return seconds === null ? null : inSeconds(seconds);
}

export type KeyChanges<S extends KeySummary> = ReturnType<typeof keyChanges<S>>;

/** How keys of a kind are rotated, revoked and given an end. */
export function keyChanges<S extends KeySummary>({ table: name, find, issueSuccessor }: KeyKind<S>) {
  const table = sql.identifier(name);
  const existing = async (db: DbOrTransaction, keyId: string) => {
    const found = await find(db, keyId);
    if (found === null) throw new Refused('not_found', `Key ${keyId} does not exist.`);
    return found;
  };
  const locked = async (tx: DbOrTransaction, keyId: string) => {
    await tx.execute(sql`select 1 from ${table} where key_id = ${keyId} for update`);
    return existing(tx, keyId);
  };
  const update = async (tx: DbOrTransaction, keyId: string, changes: SQL) => {
    await tx.execute(sql`update ${table} set ${changes} where key_id = ${keyId}`);
    return existing(tx, keyId);
  };

  return {
    /** Issues the successor of an active key, which stays valid for the overlap, or until it expires. */
    rotate: async (
      db: DbOrTransaction,
      { keyId, overlapSeconds = DEFAULT_OVERLAP_SECONDS, expiresInSeconds }: Rotation,
    ): Promise<Issued<S> & { readonly replaced: S }> => {
      checkOverlap(overlapSeconds);
      return db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        refuseRotation(old);
        const life = expiresInSeconds === undefined ? lifeOf(old) : expiresInSeconds;
        const issued = await issueSuccessor(tx, old, life);
        const successor = issued.summary.keyId;
        const expiry = sql`expires_at = least(expires_at, ${inSeconds(overlapSeconds)}), replaced_by = ${successor}`;
        return { ...issued, replaced: await update(tx, keyId, expiry) };
      });
    },
    revoke: (db: DbOrTransaction, keyId: string): Promise<Changed<S>> =>
      db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        if (old.state === 'revoked') return { changed: false, was: old.state, summary: old };
        const summary = await update(tx, keyId, sql`state = 'revoked', revoked_at = service_now()`);
        return { changed: true, was: old.state, summary };
      }),
    setState: (db: DbOrTransaction, keyId: string, state: 'active' | 'inactive'): Promise<Changed<S>> =>
      db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        if (old.state === 'revoked')
          throw new Refused('conflict', `Key ${keyId} is revoked, and stays so: issue a new one.`);
        if (old.state === state) return { changed: false, was: old.state, summary: old };
        const summary = await update(tx, keyId, sql`state = ${state}`);
        return { changed: true, was: old.state, summary };
      }),
  };
}

function lifeOf({ createdAt, expiresAt }: KeySummary): number | null {
  return expiresAt === null ? null : Math.round((expiresAt.getTime() - createdAt.getTime()) / 1_000);
}

function refuseRotation({ keyId, state, expired, replacedBy }: KeySummary): void {
  if (state !== 'active')
    throw new Refused('conflict', `Key ${keyId} is ${state}: only an active key rotates.`);
  if (expired) throw new Refused('conflict', `Key ${keyId} has expired: issue a new one.`);
  if (replacedBy !== null)
    throw new Refused('conflict', `Key ${keyId} was already replaced by ${replacedBy}: rotate that one.`);
}

type Recorded = 'keyId' | 'partnerId' | 'environment' | 'keyHash' | 'state';
export interface ApiKeyRecord extends Readonly<Pick<typeof apiKeys.$inferSelect, Recorded>> {
  readonly partnerState: Partner['state'];
  /** When it expires, in milliseconds of `performance.now()`: the wall clock of this machine may be wrong; null: never. */
  readonly endsAtMs: number | null;
}

export type ApiKeySummary = Awaited<ReturnType<typeof summaries>>[number];

const RECORD = `
  select ${columns('k', 'key_id, partner_id, environment, key_hash, state')}, p.state as "partnerState",
    ${msText('k.expires_at - service_now()')} as "leftMs"
  from api_keys k join partners p on p.partner_id = k.partner_id`;

async function records(db: Reader, condition: string, parameters: readonly Parameter[]) {
  type Row = Omit<ApiKeyRecord, 'endsAtMs'> & { readonly leftMs: number | null };
  const askedMs = performance.now();
  const rows = await rowsOf<Row>(db, `${RECORD} ${condition}`, parameters);
  return rows.map(({ leftMs, ...row }) => ({ ...row, endsAtMs: leftMs === null ? null : askedMs + leftMs }));
}

export const loadAllKeys = (db: Reader): Promise<ApiKeyRecord[]> => records(db, '', []);

export const loadKeysOfPartner = (db: Reader, partnerId: string): Promise<ApiKeyRecord[]> =>
  records(db, 'where k.partner_id = $1', [partnerId]);

export async function findKeyByHash(db: Reader, hash: Buffer): Promise<ApiKeyRecord | null> {
  const [record] = await records(db, 'where k.key_hash = $1', [hash]);
  return record ?? null;
}

const { keyHash: _, ...API_KEY } = getTableColumns(apiKeys);

const summaries = (db: DbOrTransaction) =>
  db
    .select({ ...API_KEY, expired: isExpired(apiKeys.expiresAt), partnerState: partners.state })
    .from(apiKeys)
    .innerJoin(partners, eq(partners.partnerId, apiKeys.partnerId))
    .$dynamic();

/**
 * Keys for operators, by partner, newest last.
 * @param filter.after last id of the page before
 * @throws Refused when that id is unknown
 */
export async function listKeys(
  db: DbOrTransaction,
  filter: {
    partnerId?: string | undefined;
    environment?: KeyEnvironment | undefined;
    after?: string | undefined;
    limit: number;
  },
): Promise<ApiKeySummary[]> {
  const { partnerId, environment, keyId } = apiKeys;
  const last = filter.after === undefined ? undefined : await findKey(db, filter.after);
  if (last === null) throw new Refused('not_found', `There is no key ${filter.after}.`);
  const behind = last && sql`(${partnerId}, ${keyId}) > (${last.partnerId}, ${last.keyId})`;
  return summaries(db)
    .where(and(given(partnerId, filter.partnerId), given(environment, filter.environment), behind))
    .orderBy(asc(partnerId), asc(keyId))
    .limit(filter.limit);
}

export async function findKey(db: DbOrTransaction, keyId: string): Promise<ApiKeySummary | null> {
  const [row] = await summaries(db).where(eq(apiKeys.keyId, keyId));
  return row ?? null;
}

/**
 * Issues a key. While its partner is inactive, it answers 401.
 * @param expiresInSeconds life by the database's clock; null: no end
 */
export async function issueKey(
  db: DbOrTransaction,
  { partnerId, environment, expiresInSeconds }: Tenant & { readonly expiresInSeconds: number | null },
): Promise<Issued<ApiKeySummary>> {
  const { key, row } = newKey(environment, 'key', expiresInSeconds);
  const partner = await db.execute(sql`select 1 from partners where partner_id = ${partnerId} for share`);
  if (partner.length === 0) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
  await db.insert(apiKeys).values({ ...row, partnerId, environment });
  return { key, summary: (await findKey(db, row.keyId)) as ApiKeySummary };
}

export const apiKeyChanges = keyChanges<ApiKeySummary>({
  table: 'api_keys',
  find: findKey,
  issueSuccessor: (tx, old, expiresInSeconds) => issueKey(tx, { ...old, expiresInSeconds }),
});

const NOTE_USES = `
  insert into key_uses (key_id, used_at)
  select id, to_timestamp($2::float8 / 1000) from unnest($1::text[]) id
  on conflict (key_id) do update set used_at = excluded.used_at where key_uses.used_at < excluded.used_at`;

export const writeKeyUses = (sql: Reader, keyIds: readonly string[], hourMs: number) =>
  runPrepared(sql, NOTE_USES, [keyIds, hourMs]);

export async function lastUses(db: Reader, keyIds: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const text = `select ${columns('u', 'key_id, used_at')} from key_uses u where u.key_id = any($1::text[])`;
  const rows = await rowsOf<{ keyId: string; usedAt: Date }>(db, text, [keyIds]);
  return new Map(rows.map(({ keyId, usedAt }) => [keyId, usedAt]));
}

/** The secret that authenticates the cursors of pages in all API processes. */
export const readCursorSecret = async (reader: Reader) =>
  (await oneRow<{ secret: Buffer }>(reader, 'select secret from cursor_secrets')).secret;
