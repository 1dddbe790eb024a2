import type { MerchantFields, MerchantSummary } from '../db/catalogue/merchants';
import { depositView } from './product-view';

/** A merchant as a row of an import file (docs/import-format.md): what is shown can be imported. */
export function merchantView(merchant: MerchantFields) {
  return {
    merchant_id: merchant.merchantId,
    trading_name: merchant.tradingName,
    fca_authorised: merchant.fcaAuthorised,
    show_products: merchant.showProducts,
    summary_style: merchant.summaryStyle,
    deposit_floor: depositView(merchant.depositFloor),
    partner_access: merchant.partnerAccess,
    partners: merchant.partnerIds,
  };
}

/** A line of a list. */
export function summaryView(merchant: MerchantSummary) {
  return {
    merchant_id: merchant.merchantId,
    trading_name: merchant.tradingName,
    fca_authorised: merchant.fcaAuthorised,
    show_products: merchant.showProducts,
    summary_style: merchant.summaryStyle,
    partner_access: merchant.partnerAccess,
    active_products: merchant.activeProducts,
  };
}
