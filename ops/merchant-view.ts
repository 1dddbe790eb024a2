import type { MerchantFields } from '../db/catalogue/merchants';
import { snakeCased } from './output';
import { depositView } from './product-view';

/** A merchant as a row of an import file (docs/import-format.md): what is shown can be imported. */
export const merchantView = ({ depositFloor, partnerIds, ...rest }: MerchantFields) => ({
  ...snakeCased(rest),
  deposit_floor: depositView(depositFloor),
  partners: partnerIds,
});
