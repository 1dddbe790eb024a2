import { and, asc, eq, getTableColumns, inArray } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { TEST_LENDERS } from '../../domain/test-merchants';
import { findLender } from '../applications/lenders';
import { Refused } from '../refused';
import { creditApplications, serviceKeys } from '../schema';
import { isExpired } from '../schema/columns';
import { keyChanges, newKey, type Issued, type KeyEnvironment, type KeySummary } from './key';

/** What a service key gives access to: applications of one lender in one environment. */
export interface KeyBinding {
  readonly lender: string;
  readonly environment: KeyEnvironment;
}

/** The applications that a service key may see; every one of its lender and environment. */
export const inScope = ({ lender, environment }: KeyBinding) =>
  and(eq(creditApplications.lender, lender), eq(creditApplications.environment, environment));

/** A lender's integration that has called with a service key. */
export interface ServiceCaller extends KeyBinding {
  readonly keyId: string;
}

export interface ServiceKeySummary extends KeySummary, KeyBinding {
  readonly name: string;
}

const LONGEST_NAME = 120;

const { keyHash: _, ...SHOWN } = getTableColumns(serviceKeys);
const SUMMARY = { ...SHOWN, expired: isExpired(serviceKeys.expiresAt) };

async function findServiceKey(db: DbOrTransaction, keyId: string): Promise<ServiceKeySummary | null> {
  const [row] = await db.select(SUMMARY).from(serviceKeys).where(eq(serviceKeys.keyId, keyId));
  return row ?? null;
}

/** The keys with these hashes (`hashKey`), whatever their state, by their hashes in hex. */
export async function findServiceKeysByHash(
  db: DbOrTransaction,
  hashes: readonly Buffer[],
): Promise<Map<string, ServiceKeySummary>> {
  const rows = await db
    .select({ keyHash: serviceKeys.keyHash, summary: SUMMARY })
    .from(serviceKeys)
    .where(inArray(serviceKeys.keyHash, [...hashes]));
  return new Map(rows.map(({ keyHash, summary }) => [keyHash.toString('hex'), summary]));
}

export async function listServiceKeys(db: DbOrTransaction): Promise<ServiceKeySummary[]> {
  return db.select(SUMMARY).from(serviceKeys).orderBy(asc(serviceKeys.keyId));
}

/**
 * Issues a key.
 * @param wanted.expiresInSeconds life of the key by the database's clock; null: no end.
 * @throws Refused without a name, for an unknown lender, or with an expiry that is not in the future.
 */
export async function issueServiceKey(
  db: DbOrTransaction,
  wanted: KeyBinding & { readonly name: string; readonly expiresInSeconds: number | null },
): Promise<Issued<ServiceKeySummary>> {
  const name = wanted.name.trim();
  if (name === '' || name.length > LONGEST_NAME) {
    throw new Refused('invalid', `A service key needs a name of 1 to ${LONGEST_NAME} characters.`);
  }
  const { lender, environment } = wanted;
  if ((await findLender(db, lender)) === null) {
    throw new Refused('not_found', `Lender ${lender} does not exist: ops lenders list shows those that do.`);
  }
  if (TEST_LENDERS.has(lender)) {
    throw new Refused(
      'invalid',
      `${lender} belongs to the designated test merchants: no integration speaks for it.`,
    );
  }
  const { key, row } = newKey('service', 'svk', wanted.expiresInSeconds);
  await db.insert(serviceKeys).values({ ...row, name, lender, environment });
  const summary = await findServiceKey(db, row.keyId);
  if (summary === null) throw new Error(`${row.keyId} was not stored`);
  return { key, summary };
}

export const {
  rotate: rotateServiceKey,
  revoke: revokeServiceKey,
  setState: setServiceKeyState,
} = keyChanges<ServiceKeySummary>({
  table: 'service_keys',
  find: findServiceKey,
  issueSuccessor: (tx, { name, lender, environment }, expiresInSeconds) =>
    issueServiceKey(tx, { name, lender, environment, expiresInSeconds }),
});
