import { z } from 'zod';
import type { MerchantFields, StoredMerchant } from '../../db/catalogue/merchants';
import { choice, flag, merchantId, partnerId, text } from './fields';
import { minimumDeposit } from './product-schema';

/**
 * One row of a merchants file (docs/import-format.md). A field that is absent leaves a stored merchant as it is;
 * `null` takes the value away.
 */
export const merchantRowSchema = z.strictObject({
  merchant_id: merchantId,
  trading_name: text(120).nullish(),
  fca_authorised: flag.nullish(),
  show_products: flag.optional(),
  summary_style: choice(['offer', 'headline']).optional(),
  deposit_floor: minimumDeposit.nullish(),
  partner_access: choice(['all', 'restricted']).optional(),
  partners: z
    .array(partnerId, { error: 'must be a list of partner ids' })
    .max(10_000, 'must hold at most 10,000 partner ids')
    .refine((ids) => new Set(ids).size === ids.length, 'must not name a partner twice')
    .optional(),
});

export type MerchantRow = z.output<typeof merchantRowSchema>;
/** A row as it stands in a file. */
export type MerchantFileRow = z.input<typeof merchantRowSchema>;

const NEW: Omit<MerchantFields, 'merchantId'> = {
  tradingName: null,
  fcaAuthorised: null,
  showProducts: true,
  summaryStyle: 'offer',
  depositFloor: null,
  partnerAccess: 'all',
  partnerIds: [],
};

/** What a merchant is after a row has been applied to it. @param stored null: it is new. */
export function applyRow(row: MerchantRow, stored: StoredMerchant | null): MerchantFields {
  const before = stored === null ? NEW : toFields(stored);
  const partnerAccess = row.partner_access ?? before.partnerAccess;
  // Opened to all, a merchant keeps no list.
  const kept = partnerAccess === 'restricted' ? before.partnerIds : [];
  return {
    merchantId: row.merchant_id,
    tradingName: row.trading_name === undefined ? before.tradingName : row.trading_name,
    fcaAuthorised: row.fca_authorised === undefined ? before.fcaAuthorised : row.fca_authorised,
    showProducts: row.show_products ?? before.showProducts,
    summaryStyle: row.summary_style ?? before.summaryStyle,
    depositFloor: row.deposit_floor === undefined ? before.depositFloor : row.deposit_floor,
    partnerAccess,
    partnerIds: row.partners?.toSorted() ?? kept,
  };
}

/** A stored merchant's own set-up, its products aside. */
export function toFields({ setup, partnerAccess, partnerIds }: StoredMerchant): MerchantFields {
  const { products: _products, corruptFields: _corrupt, ...own } = setup;
  return { ...own, partnerAccess, partnerIds: partnerIds.toSorted() };
}
