import { listLenders } from '../../db/applications/lenders';
import { appendChanges, type Change } from '../../db/audit/change-log';
import { loadMerchants } from '../../db/catalogue/merchants';
import type { ProductDefinition } from '../../db/catalogue/product-row';
import { insertProducts, loadProductsOf, updateProducts } from '../../db/catalogue/products';
import type { StoredProduct } from '../../db/catalogue/products';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { nameFault, nameKey } from '../../domain/name';
import { checkProduct } from '../../domain/product-check';
import { TEST_LENDERS, TEST_MERCHANTS } from '../../domain/test-merchants';
import { versionView } from '../catalogue-view';
import { differences, printable, snakeCase, type Difference } from '../output';
import { productRowSchema, toProductDefinition, type StatedProduct } from './row-schemas';
import { checkForm, refuseFaults, shareWarning, takeImportTurn, valuesOf, warnings } from './rows';
import type { Fault, ImportOptions, ReportedChange } from './rows';

interface CheckedProduct {
  readonly row: number;
  readonly merchantId: string;
  readonly definition: StatedProduct;
  /** Null: a new product comes last, and a stored one keeps its place. */
  readonly displayOrder: number | null;
  readonly active: boolean;
}

interface PlannedProduct extends CheckedProduct {
  readonly definition: ProductDefinition;
  readonly displayOrder: number;
  readonly stored: StoredProduct | null;
  readonly terms: readonly string[];
  readonly fields: readonly Difference[];
  readonly placeChanges: boolean;
}

/** Creates and changes products, all or none; other terms make a new version. @throws ImportRefused with every fault: nothing written. */
export async function importProducts(db: DbOrTransaction, rows: readonly unknown[], options: ImportOptions) {
  const { checked, faults } = checkProducts(rows);
  return db.transaction(async (tx) => {
    await takeImportTurn(tx);
    const merchantIds = valuesOf(rows, 'merchant_id', faults);
    const lenders = valuesOf(rows, 'lender', faults);
    const ids = [...new Set(merchantIds.map(([, id]) => id))];
    const known = new Set((await loadMerchants(tx, ids)).map(({ setup }) => setup.merchantId));
    const stored = await loadProductsOf(tx, ids);
    const named = nameProducts(checked, stored, faults);
    const lenderNames = new Map((await listLenders(tx)).map(({ lender, name }) => [lender, name]));
    for (const [row, merchantId] of merchantIds)
      if (!known.has(merchantId))
        faults.push({ row, field: 'merchant_id', message: `${merchantId} does not exist` });
    for (const [row, lender] of lenders)
      if (!lenderNames.has(lender)) {
        const message = `${lender} is no lender's key: ops lenders list shows them`;
        faults.push({ row, field: 'lender', message });
      }
    refuseFaults(faults);
    const planned = plan(named, stored, lenderNames);
    const writing = planned.filter(
      ({ stored, terms, placeChanges }) => stored === null || terms.length > 0 || placeChanges,
    );
    if (!options.dryRun) await write(tx, writing, options);
    return { rows: planned.length, changes: writing.map(reported) };
  });
}

/** Everything about a products file that needs no database: form, duplicates, and whether the figures agree with the APR. */
export function checkProducts(rows: readonly unknown[]): { checked: CheckedProduct[]; faults: Fault[] } {
  const { parsed, faults } = checkForm(rows, productRowSchema, ['merchant_id', 'credit_product']);
  // Products share their figures, those of a chain's merchants most of all: what was checked once need not be checked again.
  const known = new Map<string, ReturnType<typeof checkProduct>>();
  const checked = parsed.map(({ row, value }) => {
    const definition = toProductDefinition(value);
    const example = value.representative_example ?? undefined;
    const terms = JSON.stringify([{ ...definition, creditProduct: '', lender: '' }, example]);
    const found = known.get(terms) ?? checkProduct(definition, example);
    known.set(terms, found);
    const fault = (field: string, message: string) => faults.push({ row, field, message });
    for (const { field, message } of found)
      fault(fileName(field), message.replaceAll(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, fileName));
    const { validFrom, validTo } = definition;
    if (validFrom !== null && validTo !== null && validTo < validFrom)
      fault('valid_to', 'must not be before valid_from');
    if (TEST_LENDERS.has(value.lender)) fault('lender', 'is a lender of the designated test merchants');
    if (TEST_MERCHANTS.has(value.merchant_id))
      fault('merchant_id', 'is a designated test merchant, whose answers are fixed');
    const { merchant_id: merchantId, display_order: displayOrder = null, active } = value;
    return { row, merchantId, definition, displayOrder, active: active ?? true };
  });
  return { checked, faults };
}

/**
 * Products under the names that they are stored with: a stored name as it is, another one in NFC. A name
 * that is none, or that looks like that of another active product, is a fault, unless both were so already.
 * @param faults those found are added
 */
function nameProducts(
  checked: readonly CheckedProduct[],
  stored: readonly StoredProduct[],
  faults: Fault[],
): CheckedProduct[] {
  const before = new Map(stored.map((one) => [identity(one.merchantId, one.creditProduct), one]));
  const firstOf = new Map<string, { readonly row: number; readonly sent: string }>();
  const named = checked.map((product) => {
    const { row, merchantId, definition } = product;
    const sent = definition.creditProduct;
    const nfc = sent.normalize('NFC');
    const creditProduct = before.has(identity(merchantId, sent)) ? sent : nfc;
    const key = identity(merchantId, creditProduct);
    const first = firstOf.get(key);
    // Names that are the same in the file have been found by its form.
    if (first !== undefined && first.sent !== sent)
      faults.push({
        row,
        field: 'credit_product',
        message: `is the same as in row ${first.row}`,
        value: sent,
      });
    firstOf.set(key, first ?? { row, sent });
    const message = before.has(key) ? null : nameFault(creditProduct);
    if (message !== null) faults.push({ row, field: 'credit_product', message, value: sent });
    return { ...product, definition: { ...definition, creditProduct } };
  });
  const wasActive = (product: CheckedProduct) =>
    before.get(identity(product.merchantId, product.definition.creditProduct))?.active === true;
  interface Active {
    /** Null: the file does not name it. */
    readonly row: number | null;
    readonly name: string;
  }
  const active = new Map<string, Active>();
  const lookalike = (merchantId: string, name: string) => identity(merchantId, nameKey(name));
  for (const one of stored) {
    const key = identity(one.merchantId, one.creditProduct);
    if (one.active && !firstOf.has(key))
      active.set(lookalike(one.merchantId, one.creditProduct), { row: null, name: one.creditProduct });
  }
  // Those that were active first, so that the fault is at the row that is new.
  for (const product of named.toSorted((a, b) => Number(wasActive(b)) - Number(wasActive(a)))) {
    const { row, merchantId, definition } = product;
    if (!product.active) continue;
    const key = lookalike(merchantId, definition.creditProduct);
    const other = active.get(key);
    const name = definition.creditProduct;
    if (other === undefined) active.set(key, { row, name });
    else if (!wasActive(product) && other.name !== name) {
      const where = other.row === null ? 'the active product' : `the one in row ${other.row},`;
      faults.push({
        row,
        field: 'credit_product',
        message: `looks like ${where} "${printable(other.name)}"`,
        value: name,
      });
    }
  }
  return named;
}

const FILE_NAMES: Readonly<Record<string, string>> = {
  aprBasisPoints: 'apr',
  ratePpm: 'rate',
  settlementFeePence: 'settlement_fee',
  minLoanPence: 'minimum_loan_amount',
  maxLoanPence: 'maximum_loan_amount',
  depositMin: 'minimum_deposit',
  depositMax: 'maximum_deposit',
  publishedExample: 'representative_example',
};

const fileName = (field: string) => FILE_NAMES[field] ?? snakeCase(field);

const identity = (merchantId: string, creditProduct: string) => JSON.stringify([merchantId, creditProduct]);

const LOST = 'every term, as the stored version is lost';

function plan(
  checked: readonly CheckedProduct[],
  stored: readonly StoredProduct[],
  lenderNames: ReadonlyMap<string, string>,
): PlannedProduct[] {
  const before = new Map(stored.map((one) => [identity(one.merchantId, one.creditProduct), one]));
  const lastPlace = new Map<string, number>();
  const seen = (merchantId: string, place: number) =>
    lastPlace.set(merchantId, Math.max(lastPlace.get(merchantId) ?? 0, place));
  for (const product of stored) seen(product.merchantId, product.displayOrder);
  return checked.map((product) => {
    const { merchantId, active } = product;
    const lenderName = lenderNames.get(product.definition.lender) ?? '';
    const definition = { ...product.definition, lenderName };
    const old = before.get(identity(merchantId, definition.creditProduct)) ?? null;
    const displayOrder = product.displayOrder ?? old?.displayOrder ?? (lastPlace.get(merchantId) ?? 0) + 1;
    seen(merchantId, displayOrder);
    const planned = { ...product, definition, displayOrder, stored: old };
    if (old === null) return { ...planned, terms: [], fields: [], placeChanges: false };
    const place = differences(
      { display_order: old.displayOrder, active: old.active },
      { display_order: displayOrder, active },
    );
    const placeChanges = place.length > 0;
    const terms = differences(
      old.definition === null ? {} : versionView(old.definition),
      versionView(definition),
    );
    const names = old.definition === null ? [LOST] : terms.map(({ field }) => field);
    return { ...planned, terms: names, fields: [...terms, ...place], placeChanges };
  });
}

async function write(tx: DbOrTransaction, writing: readonly PlannedProduct[], options: ImportOptions) {
  const { actor, action } = options;
  const changes: Change[] = [];
  const log = (product: PlannedProduct, subject: string, change: Record<string, unknown>) => {
    const { merchantId, definition } = product;
    const details = { merchant_id: merchantId, credit_product: definition.creditProduct, ...change };
    changes.push({ actor, action, subject, details });
  };
  const fresh = writing.filter(({ stored }) => stored === null);
  const ids = await insertProducts(tx, fresh);
  for (const [place, product] of fresh.entries())
    log(product, ids[place] ?? '', { change: 'created', version: 1 });
  const changed = writing.flatMap((product) =>
    product.stored === null ? [] : [{ ...product, stored: product.stored }],
  );
  const versions = await updateProducts(
    tx,
    changed.map(({ stored, terms, definition, active, displayOrder }) => ({
      ...stored,
      definition: terms.length > 0 ? definition : null,
      active,
      displayOrder,
    })),
  );
  for (const [place, product] of changed.entries())
    log(product, product.stored.productId, {
      change: 'updated',
      version: versions[place],
      fields: product.fields,
    });
  await appendChanges(tx, changes);
}

/** A number or a date, as a spreadsheet makes of the names 00123 and 12/24. */
const FROM_SPREADSHEET = /^[\d\s.,/:-]+$|^\d{1,2}-\p{L}{3}$|^\p{L}{3}-\d{2}$/u;

/** A larger step is most likely a slip of the decimal point: 9.9 for 99. In basis points. */
const LARGEST_APR_STEP = 500;

function reported({ row, merchantId, definition, stored, terms, fields }: PlannedProduct): ReportedChange {
  const before = stored?.definition?.aprBasisPoints ?? definition.aprBasisPoints;
  const apr = definition.aprBasisPoints;
  const step = Math.abs(apr - before);
  const says = (field: string) => stored === null || terms.includes(field);
  const updated = terms.length > 0 ? `new version: ${terms.join(', ')}` : 'changed: place or activity';
  return {
    row,
    subject: `${merchantId} ${definition.creditProduct}`,
    change: stored === null ? 'created' : updated,
    fields,
    warning: warnings(
      stored === null && FROM_SPREADSHEET.test(definition.creditProduct)
        ? 'its name is a number or a date: did a spreadsheet change it?'
        : null,
      step > LARGEST_APR_STEP
        ? `its APR moves by ${(step / 100).toFixed(1)} percentage points: is that meant?`
        : null,
      says('apr') && apr > 0 && apr < 100 ? `its apr is ${apr / 100} %: did you mean ${apr} %?` : null,
      says('minimum_deposit') ? shareWarning('minimum_deposit', definition.depositMin) : null,
      says('maximum_deposit') ? shareWarning('maximum_deposit', definition.depositMax) : null,
    ),
  };
}
