import type { Database } from '../../db/postgres/connect';
import { saveMerchants } from '../../db/catalogue/merchant-changes';
import type { MerchantFields } from '../../db/catalogue/merchants';
import { insertProducts } from '../../db/catalogue/products';
import type { ProductTerms } from '../../domain/product';
import { TERMS } from './terms';

/** Stores an authorised merchant with these products (variations of TERMS), in this order. */
export async function addMerchant(
  { db }: Database,
  merchantId: string,
  fields: Partial<MerchantFields> & { readonly products?: readonly Partial<ProductTerms>[] } = {},
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
