import type { Product } from './product';

const orders = new WeakMap<readonly Product[], readonly Product[]>();

/** Products in the merchant's order: `displayOrder`, then the name by code units. Sorted once for each list. */
function inMerchantOrder(products: readonly Product[]): readonly Product[] {
  let ordered = orders.get(products);
  if (ordered === undefined) {
    ordered = products.toSorted(
      (a, b) => a.displayOrder - b.displayOrder || (a.creditProduct < b.creditProduct ? -1 : 1),
    );
    orders.set(products, ordered);
  }
  return ordered;
}

/** The products offered on a day (YYYY-MM-DD), in the merchant's order; both ends of their validity are inclusive. */
export function offeredProducts(products: readonly Product[], today: string): Product[] {
  return inMerchantOrder(products).filter(
    ({ validFrom, validTo }) =>
      (validFrom === null || validFrom <= today) && (validTo === null || today <= validTo),
  );
}
