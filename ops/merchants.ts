import type { Command } from 'commander';
import { listMerchants, loadMerchant } from '../db/catalogue/merchants';
import { Refused } from '../db/refused';
import { completeMerchant } from '../domain/product';
import { idOf, newIdOf } from './arguments';
import { handle, type Call, type OpsDeps } from './call';
import { addImportCommand } from './import/command';
import { importMerchants, toFields } from './import/merchants';
import { ImportRefused } from './import/rows';
import { rowFromOptions, setUpOptions, type SetUp } from './merchant-options';
import { merchantView } from './catalogue-view';
import { facts, listed, snakeCased, type Cell } from './output';
import { inPages, paged, type Page } from './paging';

const EXAMPLES = `
Examples:
  ops merchants create M123456 --trading-name "Example Shop" --fca-authorised yes
  ops merchants set M123456 --deposit-floor-percent 10 --deposit-floor-amount 50.00
  ops merchants set M123456 --partner-access restricted --partners P100001,P100002
  ops merchants show M123456                  also says what is missing from its set-up
  ops merchants import merchants.json --dry-run`;

/** `ops merchants …` */
export function addMerchantCommands(program: Command, deps: OpsDeps): void {
  const merchants = program
    .command('merchants')
    .description('Who sells the goods, and its set-up.')
    .addHelpText('after', EXAMPLES);

  const list = merchants
    .command('list')
    .description('Merchants, by id.')
    .option('--partner <partner>', 'only those that exist for this partner', idOf('partner'));
  handle<Page>(inPages(list, 'merchant', { byDefault: 200 }), deps, async (call) => {
    const { partner: partnerId = null, after, limit } = call.options;
    const found = await listMerchants(call.db, { partnerId, after, limit });
    const answer = listed(found, snakeCased, {
      merchant: 'merchant_id',
      'trading name': 'trading_name',
      'FCA authorised': 'fca_authorised',
      'shows products': 'show_products',
      summary: 'summary_style',
      partners: 'partner_access',
      'active products': 'active_products',
    });
    return paged(call, answer, found, ({ merchantId }) => merchantId);
  });

  const show = merchants
    .command('show')
    .argument('<merchant>', '', idOf('merchant'))
    .description('One merchant, and what its set-up lacks.');
  handle(show, deps, async ({ db }, merchantId = '') => {
    const stored = await loadMerchant(db, merchantId);
    if (stored === null) throw new Refused('not_found', `Merchant ${merchantId} does not exist.`);
    const judged = completeMerchant(stored.setup);
    const missing = 'missingFields' in judged ? judged.missingFields : [];
    const view = merchantView(toFields(stored));
    const lines = Object.entries(view).map(([name, value]): [string, Cell] => [name, plain(value)]);
    const verdict =
      missing.length === 0
        ? 'The set-up is complete.'
        : `The set-up is INCOMPLETE: quotes answer 500 until these are there: ${missing.join(', ')}.`;
    return {
      json: {
        ...view,
        complete: missing.length === 0,
        missing_fields: missing,
        products: stored.setup.products.length,
      },
      text: `${facts([...lines, ['active products', stored.setup.products.length]])}\n\n${verdict}`,
    };
  });

  for (const verb of ['create', 'set'] as const) {
    const command = setUpOptions(
      merchants
        .command(verb)
        .argument('<merchant>', '', (verb === 'create' ? newIdOf : idOf)('merchant'))
        .description(
          verb === 'create'
            ? 'Add a merchant; set-up may follow later.'
            : "Change a merchant's set-up; what is not named stays.",
        ),
    );
    handle<SetUp>(command, deps, (call, merchantId = '') => writeOne(call, verb, merchantId));
  }

  addImportCommand(merchants, deps, { noun: 'merchants', csv: null, run: importMerchants });
}

/** Creates or changes one merchant by way of the import, so that the same rules hold. */
async function writeOne(call: Call<SetUp>, verb: 'create' | 'set', merchantId: string) {
  const { db, deps, options } = call;
  const row = { merchant_id: merchantId, ...rowFromOptions(options) };
  const report = await db.transaction(async (tx) => {
    const exists = (await loadMerchant(tx, merchantId)) !== null;
    if (verb === 'create' && exists) throw new Refused('conflict', `Merchant ${merchantId} already exists.`);
    if (verb === 'set' && !exists) throw new Refused('not_found', `Merchant ${merchantId} does not exist.`);
    try {
      return await importMerchants(tx, [row], {
        actor: deps.actor,
        action: `merchants.${verb}`,
        dryRun: false,
      });
    } catch (error) {
      if (!(error instanceof ImportRefused)) throw error;
      // There is no file, so there are no rows.
      throw new ImportRefused(error.faults.map((fault) => ({ ...fault, row: null })));
    }
  });
  const [change] = report.changes;
  const text =
    change === undefined
      ? `Merchant ${merchantId} was so already.`
      : `Merchant ${merchantId} ${change.change}.`;
  return { json: { merchant_id: merchantId, change: change?.change ?? 'unchanged' }, text };
}

const plain = (value: unknown): Cell =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell);
