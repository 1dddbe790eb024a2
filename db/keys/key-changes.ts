import { sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { apiKeys } from '../schema';
import { checkOverlap, DEFAULT_OVERLAP_SECONDS } from '../overlap';
import { Refused } from '../refused';

/** What keys of every kind have in common, as people see them. */
export interface KeySummary extends Readonly<
  Omit<typeof apiKeys.$inferSelect, 'partnerId' | 'environment' | 'keyHash'>
> {
  /** By the database's clock. */
  readonly expired: boolean;
}

export interface Issued<S extends KeySummary> {
  /** The key itself: hand it over, never log it. */
  readonly key: string;
  readonly summary: S;
}

export interface Changed<S extends KeySummary> {
  readonly changed: boolean;
  readonly summary: S;
}

/** A kind of keys: where they are kept, how one is read, and how a successor of one is made. */
interface KeyKind<S extends KeySummary> {
  readonly table: 'api_keys' | 'service_keys';
  readonly find: (db: DbOrTransaction, keyId: string) => Promise<S | null>;
  readonly issueSuccessor: (
    tx: DbOrTransaction,
    old: S,
    expiresInSeconds: number | null,
  ) => Promise<Issued<S>>;
}

export interface KeyChanges<S extends KeySummary> {
  /**
   * Issues a successor, and lets the old key live for the overlap; an earlier expiry of its own stands. Only an active,
   * unexpired key that has no successor yet can be rotated.
   * @param wanted.expiresInSeconds life of the successor; absent: as long as the old key's was from its issue on, so that a key that
   *   was to be changed every year still is.
   */
  readonly rotate: (
    db: DbOrTransaction,
    wanted: {
      keyId: string;
      overlapSeconds?: number | undefined;
      expiresInSeconds?: number | null | undefined;
    },
  ) => Promise<Issued<S> & { readonly replaced: S }>;
  /** Revokes for good; again is no change. */
  readonly revoke: (db: DbOrTransaction, keyId: string) => Promise<Changed<S>>;
  /** Switches a key off or on again; a revoked one stays revoked. */
  readonly setState: (
    db: DbOrTransaction,
    keyId: string,
    state: 'active' | 'inactive',
  ) => Promise<Changed<S>>;
}

const inSeconds = (seconds: number): SQL => sql`service_now() + make_interval(secs => ${seconds}::float8)`;

/**
 * The moment at which a new key expires, by the database's clock; null: never.
 * @throws Refused unless that is in the future.
 */
export function expiryIn(seconds: number | null): SQL | null {
  if (seconds !== null && !(seconds > 0)) throw new Refused('invalid', 'A key must expire in the future.');
  return seconds === null ? null : inSeconds(seconds);
}

export function keyChanges<S extends KeySummary>(kind: KeyKind<S>): KeyChanges<S> {
  const table = sql.identifier(kind.table);

  const existing = async (db: DbOrTransaction, keyId: string) => {
    const found = await kind.find(db, keyId);
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
    async rotate(db, { keyId, overlapSeconds = DEFAULT_OVERLAP_SECONDS, expiresInSeconds }) {
      checkOverlap(overlapSeconds);
      return db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        refuseRotation(old);
        const issued = await kind.issueSuccessor(
          tx,
          old,
          expiresInSeconds === undefined ? lifeOf(old) : expiresInSeconds,
        );
        const replaced = await update(
          tx,
          keyId,
          sql`expires_at = least(expires_at, ${inSeconds(overlapSeconds)}), replaced_by = ${issued.summary.keyId}`,
        );
        return { ...issued, replaced };
      });
    },
    revoke: (db, keyId) =>
      db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        if (old.state === 'revoked') return { changed: false, summary: old };
        const summary = await update(tx, keyId, sql`state = 'revoked', revoked_at = service_now()`);
        return { changed: true, summary };
      }),
    setState: (db, keyId, state) =>
      db.transaction(async (tx) => {
        const old = await locked(tx, keyId);
        if (old.state === 'revoked')
          throw new Refused('conflict', `Key ${keyId} is revoked, and stays so: issue a new one.`);
        if (old.state === state) return { changed: false, summary: old };
        return { changed: true, summary: await update(tx, keyId, sql`state = ${state}`) };
      }),
  };
}

/** In seconds; null: no end. */
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
