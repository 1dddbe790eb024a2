import { and, asc, desc, eq, getTableColumns, inArray, sql, type SQL } from 'drizzle-orm';
import { ulid } from 'ulid';
import type { DbOrTransaction } from '../postgres/connect';
import { products, productVersions } from '../schema';
import { given } from '../schema/columns';
import { toColumns, toDefinition, type ProductDefinition } from './product-row';
import { Refused } from '../refused';

export interface StoredProduct extends Readonly<
  Omit<typeof products.$inferSelect, 'currentVersion' | 'createdAt'>
> {
  readonly version: number;
  /** Null when the current version is missing, which only damage to the database causes. */
  readonly definition: ProductDefinition | null;
}

export type ProductVersion = Awaited<ReturnType<typeof loadVersions>>[number];

type NewProduct = Pick<StoredProduct, 'merchantId' | 'active' | 'displayOrder'> & {
  readonly definition: ProductDefinition;
};

/** With 24 columns a row this stays below the 65,534 parameters of Postgres. */
const ROWS_PER_STATEMENT = 500;

/**
 * Products for operators, in the order of their merchants.
 * @param filter.after last id of the page before
 * @throws Refused when that id is unknown
 */
export async function listProducts(
  db: DbOrTransaction,
  filter: { merchantId?: string | undefined; after?: string | undefined; limit: number },
): Promise<StoredProduct[]> {
  const { after } = filter;
  const behind = after === undefined ? undefined : await behindProduct(db, after);
  const rows = await select(db)
    .where(and(given(products.merchantId, filter.merchantId), behind))
    .orderBy(asc(products.merchantId), asc(products.displayOrder), asc(products.creditProduct))
    .limit(filter.limit);
  return rows.map(toStored);
}

async function behindProduct(db: DbOrTransaction, productId: string): Promise<SQL> {
  const [last] = await db.select().from(products).where(eq(products.productId, productId));
  if (last === undefined) throw new Refused('not_found', `There is no product ${productId}.`);
  return sql`(${products.merchantId}, ${products.displayOrder}, ${products.creditProduct})
    > (${last.merchantId}, ${last.displayOrder}::int, ${last.creditProduct})`;
}

export async function loadProductsOf(db: DbOrTransaction, merchantIds: readonly string[]) {
  const ids = sql.param([...merchantIds]);
  return (await select(db).where(sql`${products.merchantId} = any(${ids}::text[])`)).map(toStored);
}

/** @throws Refused when the merchant has no product of this name. */
export async function existingProduct(db: DbOrTransaction, merchantId: string, creditProduct: string) {
  const [row] = await select(db).where(
    and(eq(products.merchantId, merchantId), eq(products.creditProduct, creditProduct)),
  );
  if (row !== undefined) return toStored(row);
  throw new Refused('not_found', `Merchant ${merchantId} has no product "${creditProduct}".`);
}

export async function loadVersions(db: DbOrTransaction, productIds: readonly string[]) {
  const rows = await db
    .select({ creditProduct: products.creditProduct, columns: productVersions })
    .from(productVersions)
    .innerJoin(products, eq(products.productId, productVersions.productId))
    .where(inArray(productVersions.productId, [...productIds]))
    .orderBy(desc(productVersions.version));
  return rows.map(({ creditProduct, columns: { productId, version, createdAt, ...terms } }) => ({
    productId,
    version,
    createdAt,
    definition: toDefinition(creditProduct, terms),
  }));
}

/**
 * Adds products, each with version 1 of its terms.
 * @returns their ids, in the order given
 */
export async function insertProducts(tx: DbOrTransaction, wanted: readonly NewProduct[]): Promise<string[]> {
  const rows = wanted.map((product) => ({ ...product, productId: `prd_${ulid()}` }));
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    const part = rows.slice(from, from + ROWS_PER_STATEMENT);
    await tx
      .insert(products)
      .values(part.map(({ definition, ...row }) => ({ ...row, creditProduct: definition.creditProduct })));
    await tx
      .insert(productVersions)
      .values(part.map(({ productId, definition }) => ({ productId, version: 1, ...toColumns(definition) })));
  }
  return rows.map((row) => row.productId);
}

type ProductUpdate = Pick<StoredProduct, 'productId' | 'version' | 'active' | 'displayOrder'> & {
  /** Null: its terms stay. */
  readonly definition: ProductDefinition | null;
};

/**
 * Writes places, and changed terms as the next version, which prices quotes from the commit on.
 * @returns the versions that the products have then, in the order given
 */
export async function updateProducts(
  tx: DbOrTransaction,
  wanted: readonly ProductUpdate[],
): Promise<number[]> {
  const ids = sql.param(wanted.map(({ productId }) => productId));
  const last = await tx.execute<{ productId: string; version: number }>(sql`
    select product_id as "productId", max(version) as version from product_versions
    where product_id = any(${ids}::text[]) group by product_id`);
  // A product may have been set back, so this is not the current version plus one.
  const next = new Map(last.map(({ productId, version }) => [productId, version + 1]));
  const rows = wanted.map((one) => ({
    ...one,
    version: one.definition === null ? one.version : (next.get(one.productId) ?? 1),
  }));
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    const part = rows.slice(from, from + ROWS_PER_STATEMENT);
    const renewed = part.flatMap(({ productId, version, definition }) =>
      definition === null ? [] : [{ productId, version, ...toColumns(definition) }],
    );
    if (renewed.length > 0) await tx.insert(productVersions).values(renewed);
    const places = part.map(({ definition: _, ...place }) => place);
    await tx.execute(sql`
      update products p set current_version = u.version, active = u.active, display_order = u."displayOrder"
      from jsonb_to_recordset(${JSON.stringify(places)}::text::jsonb)
        as u ("productId" text, version int, active boolean, "displayOrder" int) where p.product_id = u."productId"`);
  }
  return rows.map((row) => row.version);
}

export type RenewedProduct = Pick<StoredProduct, 'productId' | 'merchantId' | 'creditProduct' | 'version'> & {
  readonly lenderNameBefore: string;
};

const {
  productId: _,
  version: __,
  lenderName: ___,
  createdAt: ____,
  ...TERMS
} = getTableColumns(productVersions);
const KEPT_COLUMNS = Object.values(TERMS).map(({ name }) => name);

/** Makes a new version with a new lender name of every product of that lender, active or not. */
export async function renameLenderInProducts(tx: DbOrTransaction, lender: string, name: string) {
  const kept = sql.raw(KEPT_COLUMNS.join(', '));
  const ofCurrent = sql.raw(KEPT_COLUMNS.map((column) => `v.${column}`).join(', '));
  return tx.execute<RenewedProduct & Record<string, unknown>>(sql`
    with renewed as (
      insert into product_versions (product_id, version, lender_name, ${kept})
      select v.product_id, (select max(o.version) + 1 from product_versions o where o.product_id = v.product_id),
        ${name}, ${ofCurrent}
      from products p join product_versions v on v.product_id = p.product_id and v.version = p.current_version
      where v.lender = ${lender} and v.lender_name <> ${name}
      returning product_id, version)
    update products p set current_version = r.version from renewed r, product_versions old
    where p.product_id = r.product_id and old.product_id = p.product_id and old.version = p.current_version
    returning p.product_id as "productId", p.merchant_id as "merchantId", p.credit_product as "creditProduct",
      p.current_version as version, old.lender_name as "lenderNameBefore"`);
}

export async function setProductActive(
  db: DbOrTransaction,
  wanted: { merchantId: string; creditProduct: string; active: boolean },
): Promise<{ changed: boolean; product: StoredProduct }> {
  const { merchantId, creditProduct, active } = wanted;
  const product = await existingProduct(db, merchantId, creditProduct);
  const rows = await db
    .update(products)
    .set({ active })
    .where(and(eq(products.productId, product.productId), eq(products.active, !active)))
    .returning({ productId: products.productId });
  return { changed: rows.length > 0, product: { ...product, active } };
}

function select(db: DbOrTransaction) {
  return db
    .select({ product: products, columns: productVersions })
    .from(products)
    .leftJoin(
      productVersions,
      and(
        eq(productVersions.productId, products.productId),
        eq(productVersions.version, products.currentVersion),
      ),
    )
    .$dynamic();
}

function toStored(row: Awaited<ReturnType<typeof select>>[number]): StoredProduct {
  const { currentVersion: version, createdAt: _, ...product } = row.product;
  if (row.columns === null) return { ...product, version, definition: null };
  const { productId: __, version: ___, createdAt: ____, ...terms } = row.columns;
  return { ...product, version, definition: toDefinition(product.creditProduct, terms) };
}
