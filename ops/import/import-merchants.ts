import { appendChanges } from '../../db/audit/change-log';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { existingPartnerIds, saveMerchants } from '../../db/catalogue/merchant-changes';
import { loadMerchants, type MerchantFields } from '../../db/catalogue/merchants';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { ImportRefused, sortFaults, type Fault } from './faults';
import { differences } from '../differences';
import { reportOf, type ImportOptions, type ImportReport, type ReportedChange } from './report';
import { merchantView } from '../merchant-view';
import { merchantName } from './file-names';
import { takeImportTurn } from './import-turn';
import { applyRow, merchantRowSchema, toFields, type MerchantRow } from './merchant-schema';
import { checkForm, type ParsedRow } from './parse-rows';

interface PlannedMerchant {
  readonly row: number;
  readonly after: MerchantFields;
  /** What is stored; null: the merchant is new. */
  readonly before: MerchantFields | null;
  /** Names of the fields that change; null: the merchant is new. */
  readonly changed: readonly (keyof MerchantFields)[] | null;
}

/**
 * Creates and changes merchants, all or none, in one transaction. The form of the rows is checked before it opens.
 * @throws ImportRefused with every fault; nothing has been written then.
 */
export async function importMerchants(
  db: DbOrTransaction,
  rows: readonly unknown[],
  options: ImportOptions,
): Promise<ImportReport> {
  const form = checkForm(rows, merchantRowSchema, ({ merchant_id: id }) =>
    typeof id === 'string' ? { field: 'merchant_id', unit: id } : null,
  );
  const reserved = form.parsed
    .filter(({ value }) => TEST_MERCHANTS.has(value.merchant_id))
    .map(({ row }) => ({
      row,
      field: 'merchant_id',
      message: 'is a designated test merchant, whose answers are fixed',
    }));
  return db.transaction(async (tx) => {
    await takeImportTurn(tx);
    const planned = await planMerchants(tx, form.parsed);
    const partnerFaults = await checkPartners(tx, form.parsed, planned);
    const faults = sortFaults([...form.faults, ...reserved, ...partnerFaults]);
    if (faults.length > 0) throw new ImportRefused(faults);
    const writing = planned.filter(({ changed }) => changed === null || changed.length > 0);
    if (!options.dryRun) await write(tx, writing, options);
    return reportOf(planned.length, writing.map(reported), options);
  });
}

async function planMerchants(
  tx: DbOrTransaction,
  parsed: readonly ParsedRow<MerchantRow>[],
): Promise<PlannedMerchant[]> {
  const found = await loadMerchants(
    tx,
    parsed.map(({ value }) => value.merchant_id),
  );
  const stored = new Map(found.map((merchant) => [merchant.setup.merchantId, merchant]));
  return parsed.map(({ row, value }) => {
    const before = stored.get(value.merchant_id) ?? null;
    const after = applyRow(value, before);
    if (before === null) return { row, before, after, changed: null };
    const old = toFields(before);
    const changed = (Object.keys(after) as (keyof MerchantFields)[]).filter(
      (field) => JSON.stringify(after[field]) !== JSON.stringify(old[field]),
    );
    // A floor that cannot be read counts as none, and is written anew.
    if (before.setup.corruptFields.includes('deposit_floor')) changed.push('depositFloor');
    return { row, before: old, after, changed };
  });
}

async function checkPartners(
  tx: DbOrTransaction,
  parsed: readonly ParsedRow<MerchantRow>[],
  planned: readonly PlannedMerchant[],
): Promise<Fault[]> {
  const known = await existingPartnerIds(tx, [
    ...new Set(parsed.flatMap(({ value }) => value.partners ?? [])),
  ]);
  const faults: Fault[] = [];
  for (const [place, { row, after }] of planned.entries()) {
    const unknown = parsed[place]?.value.partners?.filter((id) => !known.has(id)) ?? [];
    for (const id of unknown) faults.push({ row, field: 'partners', message: `${id} does not exist` });
    if (after.partnerAccess === 'restricted' && after.partnerIds.length === 0) {
      faults.push({
        row,
        field: 'partners',
        message: 'must name at least one partner when partner_access is restricted',
      });
    }
    if (after.partnerAccess === 'all' && after.partnerIds.length > 0) {
      faults.push({ row, field: 'partner_access', message: 'must be restricted when partners are named' });
    }
  }
  return faults;
}

async function write(
  tx: DbOrTransaction,
  writing: readonly PlannedMerchant[],
  options: ImportOptions,
): Promise<void> {
  await saveMerchants(
    tx,
    writing.map(({ after }) => after),
  );
  await appendChanges(
    tx,
    writing.map(({ after, changed }) => ({
      actor: options.actor,
      action: options.action,
      subject: after.merchantId,
      details:
        changed === null
          ? { change: 'created', ...merchantView(after) }
          : { change: 'updated', ...only(after, changed) },
    })),
  );
}

/** The changed fields as they are now. */
function only(after: MerchantFields, changed: readonly (keyof MerchantFields)[]): Record<string, unknown> {
  const names = new Set(changed.map(merchantName));
  return Object.fromEntries(Object.entries(merchantView(after)).filter(([name]) => names.has(name)));
}

const reported = ({ row, before, after, changed }: PlannedMerchant): ReportedChange => ({
  row,
  subject: after.merchantId,
  change: changed === null ? 'created' : `changed: ${changed.map(merchantName).join(', ')}`,
  fields: before === null ? [] : differences(merchantView(before), merchantView(after)),
  warning: null,
});
