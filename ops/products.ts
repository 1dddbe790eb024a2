import type { Command } from 'commander';
import { findProduct, listProducts, loadVersions, setProductActive } from '../db/catalogue/products';
import { Refused } from '../db/refused';
import { ukDay } from '../domain/product';
import { inPages, paged, type Page } from './arguments';
import { changeAndLog, group, handle, type OpsDeps } from './call';
import { productTable, productView, versionView } from './catalogue-view';
import { idOf } from './ids';
import { addImportCommand } from './import/command';
import { importProducts } from './import/products';
import { differences, differenceText, facts, moment } from './output';

const EXAMPLES = `
Examples:
  ops products import products.json --dry-run
  ops products list --merchant M123456
  ops products show M123456 "Classic credit 12 months"
  ops products disable M123456 "Classic credit 12 months"`;

/** Columns of a products file whose CSV cells are not text. */
const CSV_TYPES = {
  numbers: new Set(['number_of_repayments', 'deferral_months', 'first_interval_days', 'display_order']),
  flags: new Set(['active']),
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
    return paged(call, productTable(found, ukDay(deps.now())), found, ({ productId }) => productId);
  });

  const show = products
    .command('show')
    .argument('<merchant>', '', idOf('merchant'))
    .argument('<credit-product>')
    .description('One product with every version of its terms.');
  handle(show, deps, async ({ db }, merchantId = '', creditProduct = '') => {
    const product = await findProduct(db, merchantId, creditProduct);
    if (product === null)
      throw new Refused('not_found', `Merchant ${merchantId} has no product "${creditProduct}".`);
    const stored = await loadVersions(db, [product.productId]);
    // Newest first; each is compared with the one before it.
    const versions = stored.map(({ version, createdAt, definition }, at) => {
      const [terms, before] = [versionView(definition), stored[at + 1]];
      const changed = before === undefined ? null : differences(versionView(before.definition), terms);
      return { version, created_at: createdAt, changed, ...terms };
    });
    const history = versions.flatMap((one) => [
      `${one.version}, since ${moment(one.created_at)}: ${one.lender_name}, ${one.number_of_repayments} repayments, ${one.apr}%`,
      ...(one.changed ?? []).map((change) => `    ${differenceText(change)}`),
    ]);
    return {
      json: { ...productView(product), versions },
      text: `${facts(productView(product))}\n\nVersions: what each changed\n${history.join('\n')}`,
    };
  });

  addSwitch('enable', true, 'Offer a product again.');
  addSwitch('disable', false, 'Offer a product no longer; quotes already given keep it.');
  addImportCommand(products, deps, { noun: 'products', csv: CSV_TYPES, run: importProducts });

  function addSwitch(verb: string, active: boolean, description: string): void {
    const command = products
      .command(verb)
      .argument('<merchant>', '', idOf('merchant'))
      .argument('<credit-product>')
      .description(description);
    handle(command, deps, async (call, merchantId = '', creditProduct = '') => {
      const { changed, product } = await changeAndLog(call, `products.${verb}`, async (tx, log) => {
        const done = await setProductActive(tx, { merchantId, creditProduct, active });
        const details = { merchant_id: merchantId, credit_product: creditProduct, active };
        if (done.changed) await log(done.product.productId, details);
        return done;
      });
      const now = `${changed ? 'is now' : 'was already'} ${active ? 'active' : 'inactive'}`;
      const text = `Product "${creditProduct}" of ${merchantId} ${now}.`;
      return { json: { ...productView(product), changed }, text };
    });
  }
}
