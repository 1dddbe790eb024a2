import type { Command } from 'commander';
import { findProduct, listProducts, listVersions, setProductActive } from '../db/catalogue/products';
import { Refused } from '../db/refused';
import { idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { productTable, productView, versionView } from './catalogue-view';
import { addImportCommand } from './import/command';
import { importProducts } from './import/products';
import { differences, differenceText, facts, moment, type Cell } from './output';
import { inPages, paged, type Page } from './paging';
import { ukDay } from '../domain/product';

const EXAMPLES = `
Examples:
  ops products import products.json --dry-run
  ops products list --merchant M123456
  ops products show M123456 "Classic credit 12 months"
  ops products deactivate M123456 "Classic credit 12 months"`;

/** Columns of a products file whose CSV cells are not text. */
const CSV_TYPES = {
  numbers: new Set(['number_of_repayments', 'deferral_months', 'first_interval_days', 'display_order']),
  flags: new Set(['active']),
};

/** `ops products …` */
export function addProductCommands(program: Command, deps: OpsDeps): void {
  const products = program
    .command('products')
    .description("Merchants' credit products.")
    .addHelpText('after', EXAMPLES);

  const list = products
    .command('list')
    .description("Products in their merchants' order, switched-off ones too.")
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'));
  const pages = inPages(list, 'product', { byDefault: 200 });
  handle<Page & { merchant?: string }>(pages, deps, async (call) => {
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
    const versions = await listVersions(db, product.productId);
    // Newest first; each is compared with the one before it.
    const differing = versions.map(({ definition }, at) => {
      const before = versions[at + 1];
      return before === undefined
        ? null
        : differences(versionView(before.definition), versionView(definition));
    });
    const json = {
      ...productView(product),
      versions: versions.map(({ version, createdAt, definition }, at) => ({
        version,
        created_at: createdAt,
        changed: differing[at] ?? null,
        ...versionView(definition),
      })),
    };
    const lines = Object.entries(productView(product)).map(([name, value]): [string, Cell] => [
      name,
      typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
    ]);
    const history = versions.flatMap(({ version, createdAt, definition }, at) => [
      `${version}, since ${moment(createdAt)}: ${definition.lenderName}, ${definition.numberOfRepayments} repayments, ${versionView(definition).apr}%`,
      ...(differing[at] ?? []).map((one) => `    ${differenceText(one)}`),
    ]);
    return { json, text: `${facts(lines)}\n\nVersions: what each changed\n${history.join('\n')}` };
  });

  addSwitch('activate', true, 'Offer a product again.');
  addSwitch('deactivate', false, 'Offer a product no longer; quotes already given keep it.');
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
      const state = active ? 'active' : 'inactive';
      const text = `Product "${creditProduct}" of ${merchantId} ${changed ? 'is now' : 'was already'} ${state}.`;
      return { json: { ...productView(product), changed }, text };
    });
  }
}
