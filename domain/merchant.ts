import type { DepositRule, Product } from './product';

export interface Merchant {
  readonly merchantId: string;
  readonly tradingName: string;
  /** Whether the merchant may communicate regulated credit promotions (FCA). */
  readonly fcaAuthorised: boolean;
  /** False: the summary is given without the product list (no notice). */
  readonly showProducts: boolean;
  /** `offer`: the best offer that fits; `headline`: always the plain headline. */
  readonly summaryStyle: 'offer' | 'headline';
  /** Merchant-wide minimum deposit; null: none, the products' own rules decide. */
  readonly depositFloor: DepositRule | null;
  /**
   * Every product of the merchant that is switched on, in no particular order; validity days are not applied yet.
   * Empty only for a merchant that is not authorised.
   */
  readonly products: readonly Product[];
}

/** A merchant as stored: parts of the set-up may still be missing. */
export interface MerchantSetup extends Omit<Merchant, 'tradingName' | 'fcaAuthorised'> {
  readonly tradingName: string | null;
  readonly fcaAuthorised: boolean | null;
  /** Faults found while reading products that cannot be priced, as field names. */
  readonly corruptFields: readonly string[];
}

/**
 * Decides whether a merchant can be quoted for. Required: `trading_name`, `fca_authorised` and, unless the merchant
 * is recorded as not authorised, at least one product (`products`); none of its products may be corrupt.
 * @returns the complete merchant, or the names of the fields that are missing, in a stable order.
 */
export function completeMerchant(setup: MerchantSetup): { merchant: Merchant } | { missingFields: string[] } {
  const missingFields: string[] = [];
  if (setup.tradingName === null || setup.tradingName.trim() === '') missingFields.push('trading_name');
  if (setup.fcaAuthorised === null) missingFields.push('fca_authorised');
  const productless = setup.products.length === 0 && setup.corruptFields.length === 0;
  if (productless && setup.fcaAuthorised !== false) missingFields.push('products');
  missingFields.push(...setup.corruptFields);
  const { tradingName, fcaAuthorised } = setup;
  if (missingFields.length > 0 || tradingName === null || fcaAuthorised === null) return { missingFields };
  const { merchantId, showProducts, summaryStyle, depositFloor, products } = setup;
  return {
    merchant: { merchantId, tradingName, fcaAuthorised, showProducts, summaryStyle, depositFloor, products },
  };
}
