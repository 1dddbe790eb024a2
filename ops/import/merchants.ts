import { appendChanges } from '../../db/audit/change-log';
import { existingPartnerIds, saveMerchants, loadMerchants } from '../../db/catalogue/merchants';
import type { MerchantFields, StoredMerchant } from '../../db/catalogue/merchants';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { nameFault } from '../../domain/name';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { merchantView } from '../catalogue-view';
import { differences, type Difference } from '../output';
import { merchantRowSchema, type MerchantRow } from './row-schemas';
import { checkForm, refuseFaults, shareWarning, takeImportTurn, valuesOf, warnings } from './rows';
import type { Fault, ImportOptions, ParsedRow, ReportedChange } from './rows';

interface PlannedMerchant {
  readonly row: number;
  readonly after: MerchantFields;
  readonly isNew: boolean;
  /** What changes; empty when the merchant is new. */
  readonly fields: readonly Difference[];
  readonly warning: string | null;
}

/** Creates and changes merchants, all or none. @throws ImportRefused with every fault; nothing has been written then. */
export async function importMerchants(db: DbOrTransaction, rows: readonly unknown[], options: ImportOptions) {
  const { parsed, faults } = checkForm(rows, merchantRowSchema, ['merchant_id']);
  for (const { row, value } of parsed) {
    const message = 'is a designated test merchant, whose answers are fixed';
    if (TEST_MERCHANTS.has(value.merchant_id)) faults.push({ row, field: 'merchant_id', message });
  }
  return db.transaction(async (tx) => {
    await takeImportTurn(tx);
    const planned = await planMerchants(tx, parsed, faults);
    refuseFaults([...faults, ...(await checkPartners(tx, valuesOf(rows, 'partners', faults), planned))]);
    const writing = planned.filter(({ isNew, fields }) => isNew || fields.length > 0);
    if (!options.dryRun) await write(tx, writing, options);
    return { rows: planned.length, changes: writing.map(reported) };
  });
}

/** @param faults those found are added */
async function planMerchants(
  tx: DbOrTransaction,
  parsed: readonly ParsedRow<MerchantRow>[],
  faults: Fault[],
) {
  const ids = parsed.map(({ value }) => value.merchant_id);
  const stored = new Map((await loadMerchants(tx, ids)).map((one) => [one.setup.merchantId, one]));
  return parsed.map(({ row, value: sent }) => {
    const before = stored.get(sent.merchant_id);
    const value = { ...sent, trading_name: tradingName(sent, before) };
    const wrong = value.trading_name != null && value.trading_name !== before?.setup.tradingName;
    const message = wrong ? nameFault(value.trading_name ?? '') : null;
    if (message !== null)
      faults.push({ row, field: 'trading_name', message, value: sent.trading_name ?? '' });
    if (before === undefined) {
      const after = applyRow(value);
      const warning = warnings(
        hiddenListWarning(value, after),
        shareWarning('deposit_floor', after.depositFloor),
      );
      return { row, after, isNew: true, fields: [], warning };
    }
    const old = toFields(before);
    const after = applyRow(value, old);
    // A floor that cannot be read counts as none, and is written anew.
    const corrupt = before.setup.corruptFields.includes('deposit_floor');
    const view = { ...merchantView(old), ...(corrupt && { deposit_floor: 'unreadable' }) };
    const fields = differences(view, merchantView(after));
    const floorChanges = fields.some(({ field }) => field === 'deposit_floor');
    const share = floorChanges ? shareWarning('deposit_floor', after.depositFloor) : null;
    const warning = warnings(hiddenListWarning(value, after, old), share);
    return { row, after, isNew: false, fields, warning };
  });
}

/** In NFC, unless it is the stored name, which stays as it is. */
function tradingName({ trading_name: name }: MerchantRow, before: StoredMerchant | undefined) {
  return name == null || name === before?.setup.tradingName ? name : name.normalize('NFC');
}

const NEW: Omit<MerchantFields, 'merchantId'> = {
  tradingName: null,
  fcaAuthorised: null,
  showProducts: true,
  summaryStyle: null,
  depositFloor: null,
  partnerAccess: 'all',
  partnerIds: [],
};

function applyRow(row: MerchantRow, before: Omit<MerchantFields, 'merchantId'> = NEW): MerchantFields {
  const partnerAccess = row.partner_access ?? before.partnerAccess;
  // Opened to all, a merchant keeps no list.
  const kept = partnerAccess === 'restricted' ? before.partnerIds : [];
  return {
    merchantId: row.merchant_id,
    tradingName: row.trading_name === undefined ? before.tradingName : row.trading_name,
    fcaAuthorised: row.fca_authorised === undefined ? before.fcaAuthorised : row.fca_authorised,
    showProducts: row.show_products ?? before.showProducts,
    summaryStyle: row.summary_style === undefined ? before.summaryStyle : row.summary_style,
    depositFloor: row.deposit_floor === undefined ? before.depositFloor : row.deposit_floor,
    partnerAccess,
    partnerIds: row.partners?.toSorted() ?? kept,
  };
}

export function toFields({ setup, partnerAccess, partnerIds }: StoredMerchant): MerchantFields {
  const { products: _products, corruptFields: _corrupt, ...own } = setup;
  return { ...own, partnerAccess, partnerIds: partnerIds.toSorted() };
}

/** A price needs its representative example beside it (CONC 3.5.3R), which partners get with the list alone. */
function hiddenListWarning(row: MerchantRow, after: MerchantFields, before?: MerchantFields): string | null {
  if (after.showProducts || after.fcaAuthorised === false) return null;
  if (after.summaryStyle === null)
    return 'its list is hidden, so its summary is the plain headline: a hidden list needs summary_style: offer to name a price';
  const keptOffer = after.summaryStyle === 'offer' && row.summary_style === undefined;
  return keptOffer && before?.showProducts === true
    ? 'its list is hidden now, and its summary still names a price, as summary_style is offer: is that meant?'
    : null;
}

/** @param named rows and the partners that they name */
async function checkPartners(
  tx: DbOrTransaction,
  named: readonly [number, string][],
  planned: readonly PlannedMerchant[],
): Promise<Fault[]> {
  const known = await existingPartnerIds(tx, [...new Set(named.map(([, id]) => id))]);
  const faults: Fault[] = named
    .filter(([, id]) => !known.has(id))
    .map(([row, id]) => ({ row, field: 'partners', message: `${id} does not exist` }));
  for (const { row, after } of planned) {
    const fault = (field: string, message: string) => faults.push({ row, field, message });
    if (after.partnerAccess === 'restricted' && after.partnerIds.length === 0)
      fault('partners', 'must name at least one partner when partner_access is restricted');
    if (after.partnerAccess === 'all' && after.partnerIds.length > 0)
      fault('partner_access', 'must be restricted when partners are named');
  }
  return faults;
}

async function write(tx: DbOrTransaction, writing: readonly PlannedMerchant[], options: ImportOptions) {
  const { actor, action } = options;
  const saved = writing.map(({ after }) => after);
  await saveMerchants(tx, saved);
  const changes = writing.map(({ after, isNew, fields }) => {
    const details = isNew ? { change: 'created', ...merchantView(after) } : { change: 'updated', fields };
    return { actor, action, subject: after.merchantId, details };
  });
  await appendChanges(tx, changes);
}

const reported = ({ row, after, isNew, fields, warning }: PlannedMerchant): ReportedChange => ({
  row,
  subject: after.merchantId,
  change: isNew ? 'created' : `changed: ${fields.map(({ field }) => field).join(', ')}`,
  fields,
  warning,
});
