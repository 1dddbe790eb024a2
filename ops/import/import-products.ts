import type { DbOrTransaction } from '../../db/postgres/connect';
import { appendChanges, type Change } from '../../db/audit/change-log';
import { listLenders } from '../../db/applications/lenders';
import { loadMerchants } from '../../db/catalogue/merchants';
import { changedColumns, type ProductDefinition } from '../../db/catalogue/product-row';
import {
  addVersion,
  insertProducts,
  loadProductsOf,
  setProductPlace,
  type StoredProduct,
} from '../../db/catalogue/products';
import { checkProducts, type CheckedProduct } from './check-products';
import { termNames } from './file-names';
import { ImportRefused, sortFaults, type Fault } from './faults';
import { differences } from '../differences';
import { versionView } from '../product-view';
import { reportOf, type ImportOptions, type ImportReport, type ReportedChange } from './report';
import { takeImportTurn } from './import-turn';

interface PlannedProduct extends CheckedProduct {
  readonly definition: ProductDefinition;
  readonly displayOrder: number;
  /** Null: it is new. */
  readonly stored: StoredProduct | null;
  /** Terms that differ from the stored version; any of them makes a new version. */
  readonly terms: readonly string[];
  /** Whether order or activity, which are no terms, change. */
  readonly placeChanges: boolean;
}

/**
 * Creates and changes products, all or none, in one transaction. A product whose terms differ gets a new version; one
 * that is the same is left alone; one that the file does not name stays as it is. Figures are checked before the transaction opens.
 * @throws ImportRefused with every fault; nothing has been written then.
 */
export async function importProducts(
  db: DbOrTransaction,
  rows: readonly unknown[],
  options: ImportOptions,
): Promise<ImportReport> {
  const { checked, faults } = checkProducts(rows);
  return db.transaction(async (tx) => {
    await takeImportTurn(tx);
    const ids = [...new Set(checked.map(({ merchantId }) => merchantId))];
    const known = new Set((await loadMerchants(tx, ids)).map(({ setup }) => setup.merchantId));
    const orphans = checked
      .filter(({ merchantId }) => !known.has(merchantId))
      .map(({ row, merchantId }) => ({ row, field: 'merchant_id', message: `${merchantId} does not exist` }));
    const lenderNames = new Map((await listLenders(tx)).map(({ lender, name }) => [lender, name]));
    const named = checked.map((product) => withLenderName(product, lenderNames));
    const strangers = named.filter((one): one is Fault => 'message' in one);
    const found = [...faults, ...orphans, ...strangers];
    if (found.length > 0) throw new ImportRefused(sortFaults(found));
    const products = named.filter((one) => 'definition' in one);
    const planned = plan(products, await loadProductsOf(tx, ids));
    const writing = planned.filter(
      ({ stored, terms, placeChanges }) => stored === null || terms.length > 0 || placeChanges,
    );
    if (!options.dryRun) await write(tx, writing, options);
    return reportOf(planned.length, writing.map(reported), options);
  });
}

type NamedProduct = CheckedProduct & Pick<PlannedProduct, 'definition'>;

/** The product with its lender's name of today, or what is wrong with its lender. */
function withLenderName(product: CheckedProduct, names: ReadonlyMap<string, string>): NamedProduct | Fault {
  const { row, definition } = product;
  const lenderName = names.get(definition.lender);
  if (lenderName !== undefined) return { ...product, definition: { ...definition, lenderName } };
  const message = `${definition.lender} is no lender's key: ops lenders list shows them`;
  return { row, field: 'lender', message };
}

const identity = (merchantId: string, creditProduct: string) => JSON.stringify([merchantId, creditProduct]);

function plan(checked: readonly NamedProduct[], stored: readonly StoredProduct[]): PlannedProduct[] {
  const before = new Map(
    stored.map((product) => [identity(product.merchantId, product.creditProduct), product]),
  );
  const lastPlace = new Map<string, number>();
  const seen = (merchantId: string, place: number) =>
    lastPlace.set(merchantId, Math.max(lastPlace.get(merchantId) ?? 0, place));
  for (const product of stored) seen(product.merchantId, product.displayOrder);
  return checked.map((product) => {
    const { merchantId, definition, active } = product;
    const old = before.get(identity(merchantId, definition.creditProduct)) ?? null;
    const displayOrder = product.displayOrder ?? old?.displayOrder ?? (lastPlace.get(merchantId) ?? 0) + 1;
    seen(merchantId, displayOrder);
    return {
      ...product,
      displayOrder,
      stored: old,
      terms: old === null ? [] : changedTerms(old, definition),
      placeChanges: old !== null && (old.displayOrder !== displayOrder || old.active !== active),
    };
  });
}

function changedTerms({ definition: before }: StoredProduct, after: ProductDefinition): string[] {
  return before === null
    ? ['every term, as the stored version is lost']
    : termNames(changedColumns(before, after));
}

async function write(
  tx: DbOrTransaction,
  writing: readonly PlannedProduct[],
  options: ImportOptions,
): Promise<void> {
  const changes: Change[] = [];
  const log = (product: PlannedProduct, subject: string, details: Record<string, unknown>) => {
    const { merchantId, definition } = product;
    changes.push({
      actor: options.actor,
      action: options.action,
      subject,
      details: { merchant_id: merchantId, credit_product: definition.creditProduct, ...details },
    });
  };
  const fresh = writing.filter(({ stored }) => stored === null);
  const ids = await insertProducts(tx, fresh);
  for (const [place, product] of fresh.entries())
    log(product, ids[place] ?? '', { change: 'created', version: 1 });
  for (const product of writing) {
    const { stored, terms, placeChanges, active, displayOrder, definition } = product;
    if (stored === null) continue;
    const version = terms.length > 0 ? await addVersion(tx, stored, definition) : stored.version;
    if (placeChanges) await setProductPlace(tx, stored.productId, { active, displayOrder });
    log(product, stored.productId, {
      change: 'updated',
      version,
      terms,
      active,
      display_order: displayOrder,
    });
  }
  await appendChanges(tx, changes);
}

/** A larger step is most likely a slip of the decimal point: 9.9 for 99. In basis points. */
const LARGEST_APR_STEP = 500;

function reported({ row, merchantId, definition, stored, terms, ...place }: PlannedProduct): ReportedChange {
  const before = stored?.definition ?? null;
  const { active, displayOrder } = place;
  const view = (terms: ProductDefinition, at: Pick<StoredProduct, 'active' | 'displayOrder'>) => ({
    ...versionView(terms),
    display_order: at.displayOrder,
    active: at.active,
  });
  const step = before === null ? 0 : definition.aprBasisPoints - before.aprBasisPoints;
  return {
    row,
    subject: `${merchantId} ${definition.creditProduct}`,
    change: describe(stored, terms),
    fields:
      stored === null || before === null
        ? []
        : differences(view(before, stored), view(definition, { active, displayOrder })),
    warning:
      Math.abs(step) > LARGEST_APR_STEP
        ? `its APR moves by ${(Math.abs(step) / 100).toFixed(1)} percentage points: is that meant?`
        : null,
  };
}

function describe(stored: StoredProduct | null, terms: readonly string[]): string {
  if (stored === null) return 'created';
  return terms.length > 0 ? `new version: ${terms.join(', ')}` : 'changed: place or activity';
}
