import { getTableColumns, inArray, sql } from 'drizzle-orm';
import { type MerchantSetup, type Product, isPossibleDeposit } from '../../domain/product';
import { merchantPartners, merchants, partners, productVersions } from '../schema';
import { columns, runPrepared, type DbOrTransaction, type Reader } from '../postgres/connect';
import { corruptFieldsOf, toDefinition, toDepositRule } from './product-row';
import type { ProductIdentity, StoredProductRow, VersionColumns } from './product-row';

export interface StoredMerchant extends Pick<MerchantFields, 'partnerAccess' | 'partnerIds'> {
  readonly setup: MerchantSetup;
}

export interface MerchantFields extends Omit<MerchantSetup, 'products' | 'corruptFields'> {
  readonly partnerAccess: 'all' | 'restricted';
  /** Ascending; empty unless access is `restricted`. */
  readonly partnerIds: readonly string[];
}

interface MerchantRow extends Omit<MerchantFields, 'depositFloor'> {
  /** `[basis points, pence]`, because JSON has bigint columns as numbers. */
  readonly floor: readonly [number | null, number | null];
  readonly products: readonly (StoredProductRow & { creditProduct: string })[];
}

const { productId: _, createdAt: __, ...VERSION } = getTableColumns(productVersions);
const TERMS = Object.entries(VERSION)
  .map(([field, column]) => `'${field}', v.${column.name}`)
  .join(', ');

const NAMES = 'merchant_id, trading_name, fca_authorised, show_products, summary_style, partner_access';
const MERCHANT_COLUMNS = columns('m', NAMES);

// One statement, so that all is of one moment. A left join reports a product without its current version.
const MERCHANT = `select ${MERCHANT_COLUMNS},
  json_build_array(m.deposit_floor_basis_points, m.deposit_floor_fixed_pence) as floor,
  array(select mp.partner_id from merchant_partners mp where mp.merchant_id = m.merchant_id order by 1) as "partnerIds",
  (select coalesce(json_agg(json_build_object('productId', p.product_id, 'creditProduct', p.credit_product,
    'displayOrder', p.display_order, ${TERMS}) order by p.display_order, p.credit_product), '[]')
    from products p left join product_versions v on v.product_id = p.product_id and v.version = p.current_version
    where p.merchant_id = m.merchant_id and p.active) as products
  from merchants m`;

/** Reads a merchant; null when there is none. Faulty product rows are named in `setup.corruptFields`. */
export async function loadMerchant(db: Reader, merchantId: string): Promise<StoredMerchant | null> {
  const [row] = await runPrepared<MerchantRow>(db, `${MERCHANT} where m.merchant_id = $1`, [merchantId]);
  return row === undefined ? null : toStored(row);
}

export async function loadMerchants(db: Reader, merchantIds: readonly string[]): Promise<StoredMerchant[]> {
  const text = `${MERCHANT} where m.merchant_id = any($1::text[])`;
  return (await runPrepared<MerchantRow>(db, text, [merchantIds])).map(toStored);
}

/**
 * Merchants for operators, by id.
 * @param filter.partnerId only those that exist for this partner; null: all
 */
export async function listMerchants(
  db: Reader,
  filter: { partnerId: string | null; after?: string | undefined; limit: number },
) {
  type Row = Omit<MerchantFields, 'depositFloor' | 'partnerIds'> & { readonly activeProducts: number };
  return runPrepared<Row>(
    db,
    `select ${MERCHANT_COLUMNS},
      (select count(*)::int from products p where p.merchant_id = m.merchant_id and p.active) as "activeProducts"
      from merchants m
      where ($1::text is null or m.partner_access = 'all' or exists (
          select 1 from merchant_partners mp where mp.merchant_id = m.merchant_id and mp.partner_id = $1))
        and ($3::text is null or m.merchant_id > $3)
      order by m.merchant_id limit $2::int`,
    [filter.partnerId, filter.limit, filter.after ?? null],
  );
}

function toStored(row: MerchantRow): StoredMerchant {
  const { partnerAccess, partnerIds, floor, products: rows, ...rest } = row;
  const floorIsPossible = isPossibleDeposit(...floor);
  const corruptFields = floorIsPossible ? [] : ['deposit_floor'];
  const products: Product[] = [];
  for (const product of rows) {
    const faults = corruptFieldsOf(product);
    corruptFields.push(...faults.map((field) => `products[${product.creditProduct}].${field}`));
    if (faults.length === 0) products.push(toProduct(product));
  }
  const depositFloor = floorIsPossible ? toDepositRule(...floor) : null;
  return { setup: { ...rest, depositFloor, products, corruptFields }, partnerAccess, partnerIds };
}

/** Call it only for a row without corrupt fields. */
function toProduct(row: StoredProductRow & { creditProduct: string }): Product {
  const { productId, version, displayOrder, ...columns } = row as unknown as ProductIdentity & VersionColumns;
  return { ...toDefinition(row.creditProduct, columns), productId, version, displayOrder };
}

const ROWS_PER_STATEMENT = 1_000;

const { merchantId: ___, createdAt: ____, ...CHANGING } = getTableColumns(merchants);
const NEW_VALUES = Object.fromEntries(
  Object.entries(CHANGING).map(([field, { name }]) => [field, sql.raw(`excluded.${name}`)]),
);

/** Writes new or changed merchants, and replaces their lists of partners. Call it in a transaction. */
export async function saveMerchants(tx: DbOrTransaction, wanted: readonly MerchantFields[]): Promise<void> {
  for (let from = 0; from < wanted.length; from += ROWS_PER_STATEMENT) {
    const part = wanted.slice(from, from + ROWS_PER_STATEMENT);
    await tx
      .insert(merchants)
      .values(part.map(columnsOf))
      .onConflictDoUpdate({ target: merchants.merchantId, set: NEW_VALUES });
    const ids = part.map((merchant) => merchant.merchantId);
    await tx.delete(merchantPartners).where(inArray(merchantPartners.merchantId, ids));
    const members = part.flatMap(({ merchantId, partnerIds }) =>
      partnerIds.map((partnerId) => ({ merchantId, partnerId })),
    );
    for (let at = 0; at < members.length; at += ROWS_PER_STATEMENT)
      await tx.insert(merchantPartners).values(members.slice(at, at + ROWS_PER_STATEMENT));
  }
}

export async function existingPartnerIds(db: DbOrTransaction, partnerIds: readonly string[]) {
  if (partnerIds.length === 0) return new Set();
  const rows = await db
    .select({ partnerId: partners.partnerId })
    .from(partners)
    .where(sql`${partners.partnerId} = any(${sql.param([...partnerIds])}::text[])`);
  return new Set(rows.map((row) => row.partnerId));
}

function columnsOf(merchant: MerchantFields): typeof merchants.$inferInsert {
  const { depositFloor, partnerIds: _, ...rest } = merchant;
  return {
    ...rest,
    depositFloorBasisPoints: depositFloor?.basisPoints ?? null,
    depositFloorFixedPence: depositFloor?.fixedPence ?? null,
  };
}
