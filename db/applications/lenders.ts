import { asc, eq } from 'drizzle-orm';
import { readReferenceFormat } from '../../domain/reference-format';
import { TEST_LENDERS } from '../../domain/test-merchants';
import type { DbOrTransaction } from '../postgres/connect';
import { lenders } from '../schema';
import { renameLenderInProducts, type RenewedProduct } from '../catalogue/products';
import { Refused } from '../refused';

export type Lender = typeof lenders.$inferSelect;

const LENDER = /^[a-z][a-z0-9_]{1,31}$/;

export async function findLender(db: DbOrTransaction, lender: string): Promise<Lender | null> {
  const [row] = await db.select().from(lenders).where(eq(lenders.lender, lender));
  return row ?? null;
}

export async function listLenders(db: DbOrTransaction): Promise<Lender[]> {
  return db.select().from(lenders).orderBy(asc(lenders.lender));
}

/** @throws Refused when it exists, or its key or format is invalid */
export async function addLender(
  db: DbOrTransaction,
  wanted: { readonly lender: string; readonly name: string; readonly referenceFormat: string },
): Promise<Lender> {
  if (!LENDER.test(wanted.lender))
    throw new Refused('invalid', 'A lender is 2 to 32 of a-z, 0-9 and _, and begins with a letter.');
  checkFormat(wanted.referenceFormat);
  const [added] = await db.insert(lenders).values(wanted).onConflictDoNothing().returning();
  if (added === undefined) throw new Refused('conflict', `Lender ${wanted.lender} already exists.`);
  return added;
}

/**
 * Changes a lender's name, also in a new version of its products, or its reference format.
 * @throws Refused for an unknown lender or a bad format
 */
export async function changeLender(
  db: DbOrTransaction,
  lender: string,
  wanted: { readonly name?: string; readonly referenceFormat?: string },
): Promise<{ readonly was: Lender; readonly changed: Lender; readonly renewed: readonly RenewedProduct[] }> {
  refuseTestLender(lender);
  if (wanted.referenceFormat !== undefined) checkFormat(wanted.referenceFormat);
  const [was] = await db.select().from(lenders).where(eq(lenders.lender, lender)).for('update');
  const [changed] = await db.update(lenders).set(wanted).where(eq(lenders.lender, lender)).returning();
  if (was === undefined || changed === undefined)
    throw new Refused('not_found', `Lender ${lender} does not exist.`);
  const { name } = wanted;
  return { was, changed, renewed: name === undefined ? [] : await renameLenderInProducts(db, lender, name) };
}

/** @throws Refused for a lender of the designated test merchants, for which no integration speaks */
export function refuseTestLender(lender: string): void {
  if (TEST_LENDERS.has(lender))
    throw new Refused('invalid', `${lender} belongs to the designated test merchants.`);
}

function checkFormat(format: string): void {
  if (readReferenceFormat(format) !== null) return;
  throw new Refused(
    'invalid',
    'A format is made of characters, \\d and classes such as [A-Z0-9], each with ?, {n} or {n,m} behind it, for 64 characters at most.',
  );
}
