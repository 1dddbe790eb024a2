import type { Database } from '../../db/postgres/connect';
import { saveMerchants, loadMerchant, type MerchantFields } from '../../db/catalogue/merchants';
import { insertProducts } from '../../db/catalogue/products';
import type { ProductDefinition } from '../../db/catalogue/product-row';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { TERMS } from '../../testbed/values';

/** A shop like test merchant M000001, with products of lenders that have integrations. */
export const SHOP = 'M190001';

export async function addShop(database: Pick<Database, 'db'>): Promise<void> {
  if ((await loadMerchant(database.db, SHOP)) !== null) return;
  const products = TEST_MERCHANTS.get('M000001')?.merchant.products ?? [];
  await addMerchant(database, SHOP, {
    products: products.map(({ productId: _id, version: _version, displayOrder: _order, ...terms }) => ({
      ...terms,
      lender: terms.lender.replace('test_', ''),
    })),
  });
}

/** Stores an authorised merchant with these products (variations of TERMS), in this order. */
export async function addMerchant(
  { db }: Pick<Database, 'db'>,
  merchantId: string,
  fields: Partial<MerchantFields> & { readonly products?: readonly Partial<ProductDefinition>[] } = {},
): Promise<void> {
  const { products = [{}], ...own } = fields;
  await db.transaction(async (tx) => {
    const merchant: MerchantFields = {
      merchantId,
      tradingName: 'Example Shop',
      fcaAuthorised: true,
      showProducts: true,
      summaryStyle: 'offer',
      depositFloor: null,
      partnerAccess: 'all',
      partnerIds: [],
      ...own,
    };
    await saveMerchants(tx, [merchant]);
    await insertProducts(
      tx,
      products.map((terms, displayOrder) => ({
        merchantId,
        active: true,
        displayOrder,
        definition: {
          ...TERMS,
          lenderName: 'Example Bank',
          creditProduct: `Product ${displayOrder}`,
          validFrom: null,
          validTo: null,
          ...terms,
        },
      })),
    );
  });
}
