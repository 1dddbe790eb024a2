import type { Command } from 'commander';
import {
  existingProduct,
  listProducts,
  loadProductsOf,
  loadVersions,
  setProductActive,
} from '../db/catalogue/products';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { nameKey } from '../domain/name';
import { ukDay } from '../domain/product';
import { inPages, paged, wholeNumber, type Page } from './arguments';
import { changeAndLog, group, handle, type OpsDeps } from './call';
import { productRow, productTable, productView, versionView } from './catalogue-view';
import { idOf } from './ids';
import { addImportCommand, importAnswer } from './import/command';
import type { CsvTypes } from './import/csv';
import { MOST_ROWS } from './import/files';
import { importProducts } from './import/products';
import { takeImportTurn } from './import/rows';
import { differences, differenceText, facts, jsonText, utcText, printable } from './output';

const EXAMPLES = `
  ops products import products.json --dry-run
  ops products list --merchant M123456
  ops products show M123456 "Classic credit 12 months"
  ops products disable M123456 "Classic credit 12 months"
  ops products revert M123456 "Classic credit 12 months" --dry-run     the terms of the version before
  ops products export --merchant M123456 > products.json               what products import takes`;

/** Columns of a products file whose CSV cells are not text. */
const CSV_TYPES: CsvTypes = {
  number_of_repayments: 'whole',
  apr: 'percent',
  minimum_loan_amount: 'amount',
  maximum_loan_amount: 'amount',
  rate: 'percent',
  deferral_months: 'whole',
  first_interval_days: 'whole',
  settlement_fee: 'amount',
  'minimum_deposit.percent': 'percent',
  'minimum_deposit.amount': 'amount',
  'maximum_deposit.percent': 'percent',
  'maximum_deposit.amount': 'amount',
  valid_from: 'day',
  valid_to: 'day',
  display_order: 'whole',
  active: 'flag',
  'representative_example.loan_amount': 'amount',
  'representative_example.monthly_repayment': 'amount',
  'representative_example.final_repayment': 'amount',
  'representative_example.total_amount_payable': 'amount',
  'representative_example.cost_of_credit': 'amount',
};

export function addProductCommands(program: Command, deps: OpsDeps): void {
  const products = group(program, 'products', "Merchants' credit products.", EXAMPLES);

  const list = products
    .command('list')
    .description("Products in their merchants' order, switched-off ones too.")
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'));
  handle<Page>(inPages(list, 'product', { byDefault: 200 }), deps, async (call) => {
    const { merchant: merchantId, after, limit } = call.options;
    const found = await listProducts(call.db, { merchantId, after, limit });
    const today = ukDay(await deps.now(call.db));
    return paged(call, productTable(found, today), found.at(-1)?.productId);
  });

  const ofMerchant = (verb: string) =>
    products.command(verb).argument('<merchant>', '', idOf('merchant')).argument('<credit-product>');

  const show = ofMerchant('show').description('One product with every version of its terms.');
  handle(show, deps, async ({ db }, merchantId = '', creditProduct = '') => {
    const product = await existingProduct(db, merchantId, creditProduct);
    const stored = await loadVersions(db, [product.productId]);
    // Newest first; each is compared with the one before it.
    const versions = stored.map(({ version, createdAt, definition }, at) => {
      const [terms, before] = [versionView(definition), stored[at + 1]];
      const changed = before === undefined ? null : differences(versionView(before.definition), terms);
      return { version, created_at: createdAt, changed, ...terms };
    });
    const history = versions.flatMap((one) => [
      `${one.version}, since ${utcText(one.created_at)}: ${one.lender_name}, ${one.number_of_repayments} repayments, ${one.apr}%`,
      ...(one.changed ?? []).map((change) => `    ${differenceText(change)}`),
    ]);
    return {
      json: { ...productView(product), versions },
      text: `${facts(productView(product))}\n\nVersions: what each changed\n${history.join('\n')}`,
    };
  });

  addSwitch('enable', true, 'Offer a product again.');
  addSwitch('disable', false, 'Offer a product no longer; quotes already given keep it.');

  const revert = ofMerchant('revert')
    .description('Make a new version with the terms of the one before; later quotes are priced with it.')
    .option('--version <n>', 'with the terms of this version instead', wholeNumber(1, 1_000_000))
    .option('--dry-run', 'check it and say what would change, but write nothing');
  handle<{ version?: number }>(revert, deps, async (call, merchantId = '', creditProduct = '') => {
    const { version, dryRun = false } = call.options;
    const product = await existingProduct(call.db, merchantId, creditProduct);
    // Newest first.
    const wanted = (await loadVersions(call.db, [product.productId])).find((one) =>
      version === undefined ? one.version < product.version : one.version === version,
    );
    if (wanted === undefined)
      throw new Refused('not_found', `"${creditProduct}" has no version ${version ?? 'before this one'}.`);
    const how = { actor: dryRun ? '' : call.deps.actor, action: 'products.revert', dryRun };
    const report = await importProducts(call.db, [productRow(product, wanted.definition)], how);
    return importAnswer(report, dryRun, null);
  });

  const exported = products
    .command('export')
    .description('Products as they are now, in the format that import takes, on standard output.')
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'));
  handle(exported, deps, async ({ db, options: { merchant: merchantId } }) => {
    const found = await listProducts(db, { merchantId, limit: MOST_ROWS + 1 });
    if (found.length > MOST_ROWS)
      throw new Refused('invalid', `A file has at most ${MOST_ROWS} products: export them by --merchant.`);
    const rows = found.flatMap((one) => (one.definition === null ? [] : [productRow(one, one.definition)]));
    const lost = found.length - rows.length;
    const failure = lost === 0 ? undefined : `left out, as their current version is lost: ${lost}`;
    return { json: rows, text: jsonText(rows), failure };
  });

  addImportCommand(products, deps, { noun: 'products', csv: CSV_TYPES, run: importProducts });

  function addSwitch(verb: string, active: boolean, description: string): void {
    const command = ofMerchant(verb).description(description);
    handle(command, deps, async (call, merchantId = '', creditProduct = '') => {
      const { changed, product } = await changeAndLog(call, `products.${verb}`, async (tx, log) => {
        // An import under way could make another product of this name.
        await takeImportTurn(tx);
        if (active) await refuseLookalike(tx, merchantId, creditProduct);
        const done = await setProductActive(tx, { merchantId, creditProduct, active });
        const fields = differences({ active: !active }, { active });
        const details = { merchant_id: merchantId, credit_product: creditProduct, fields };
        if (done.changed) await log(done.product.productId, details);
        return done;
      });
      const now = `${changed ? 'is now' : 'was already'} ${active ? 'active' : 'inactive'}`;
      const text = `Product "${creditProduct}" of ${merchantId} ${now}.`;
      return { json: { ...productView(product), changed }, text };
    });
  }
}

async function refuseLookalike(tx: DbOrTransaction, merchantId: string, creditProduct: string) {
  const other = (await loadProductsOf(tx, [merchantId])).find(
    (one) =>
      one.active &&
      one.creditProduct !== creditProduct &&
      nameKey(one.creditProduct) === nameKey(creditProduct),
  );
  if (other !== undefined)
    throw new Refused(
      'conflict',
      `The active product "${printable(other.creditProduct)}" has a name that looks the same.`,
    );
}
