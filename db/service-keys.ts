import { asc, eq, getTableColumns, inArray } from 'drizzle-orm';
import { findLender, refuseTestLender } from './applications/lenders';
import { keyChanges, newKey, type Issued, type KeyEnvironment, type KeySummary } from './keys';
import type { DbOrTransaction } from './postgres/connect';
import { Refused } from './refused';
import { serviceKeys } from './schema';
import { isExpired } from './schema/columns';

export interface KeyBinding {
  readonly lender: string;
  readonly environment: KeyEnvironment;
}

/** Whether a service key may see an application: one of its lender and environment that is not simulated. */
export const inScope = (
  application: KeyBinding & { readonly simulated: number | null },
  { lender, environment }: KeyBinding,
) =>
  application.lender === lender && application.environment === environment && application.simulated === null;

export interface ServiceCaller extends KeyBinding {
  readonly keyId: string;
}

export interface ServiceKeySummary extends KeySummary, KeyBinding {
  readonly name: string;
}

const LONGEST_NAME = 120;

const { keyHash: _, ...SERVICE_KEY } = getTableColumns(serviceKeys);
const SUMMARY = { ...SERVICE_KEY, expired: isExpired(serviceKeys.expiresAt) };

async function findServiceKey(db: DbOrTransaction, keyId: string): Promise<ServiceKeySummary | null> {
  const [row] = await db.select(SUMMARY).from(serviceKeys).where(eq(serviceKeys.keyId, keyId));
  return row ?? null;
}

/** The keys with these hashes in any state, by their hashes in hex. */
export async function findServiceKeysByHash(db: DbOrTransaction, hashes: readonly Buffer[]) {
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
 * Issues a service key.
 * @param wanted.expiresInSeconds life by the database's clock; null: no end
 * @throws Refused without a name, for an unknown lender, or with an expiry that is not in the future
 */
export async function issueServiceKey(
  db: DbOrTransaction,
  wanted: KeyBinding & { readonly name: string; readonly expiresInSeconds: number | null },
): Promise<Issued<ServiceKeySummary>> {
  const name = wanted.name.trim();
  if (name === '' || name.length > LONGEST_NAME)
    throw new Refused('invalid', `A service key needs a name of 1 to ${LONGEST_NAME} characters.`);
  const { lender, environment } = wanted;
  if ((await findLender(db, lender)) === null)
    throw new Refused('not_found', `Lender ${lender} does not exist: ops lenders list shows those that do.`);
  refuseTestLender(lender);
  const { key, row } = newKey('service', 'svk', wanted.expiresInSeconds);
  await db.insert(serviceKeys).values({ ...row, name, lender, environment });
  return { key, summary: (await findServiceKey(db, row.keyId)) as ServiceKeySummary };
}

export const serviceKeyChanges = keyChanges<ServiceKeySummary>({
  table: 'service_keys',
  find: findServiceKey,
  issueSuccessor: (tx, old, expiresInSeconds) => issueServiceKey(tx, { ...old, expiresInSeconds }),
});
