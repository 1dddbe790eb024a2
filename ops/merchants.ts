import { Option, type Command } from 'commander';
import { listMerchants, loadMerchant } from '../db/catalogue/merchants';
import { Refused } from '../db/refused';
import { completeMerchant } from '../domain/product';
import { inPages, paged, type Page } from './arguments';
import { group, handle, type Call, type OpsDeps } from './call';
import { merchantView } from './catalogue-view';
import { idOf, idsOf, newIdOf, withId } from './ids';
import { addImportCommand } from './import/command';
import { importMerchants, toFields } from './import/merchants';
import { ImportRefused } from './import/rows';
import { existing, facts, listed, snakeCased } from './output';

const EXAMPLES = `
  ops merchants create M123456 --trading-name "Example Shop" --fca-authorised yes
  ops merchants set M123456 --deposit-floor-percent 10 --deposit-floor-amount 50.00
  ops merchants set M123456 --partner-access restricted --partners P100001,P100002
  ops merchants show M123456                  also says what is missing from its set-up
  ops merchants import merchants.json --dry-run`;

export function addMerchantCommands(program: Command, deps: OpsDeps): void {
  const merchants = group(program, 'merchants', 'Who sells the goods, and its set-up.', EXAMPLES);

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
    return paged(call, answer, found.at(-1)?.merchantId);
  });

  const show = withId(merchants.command('show'), 'merchant', '<merchant>').description(
    'One merchant, and what its set-up lacks.',
  );
  handle(show, deps, async ({ db }, merchantId = '') => {
    const stored = existing(await loadMerchant(db, merchantId), `Merchant ${merchantId}`);
    const judged = completeMerchant(stored.setup);
    const missing = 'missingFields' in judged ? judged.missingFields : [];
    const complete = missing.length === 0;
    const view = merchantView(toFields(stored));
    const products = stored.setup.products.length;
    const verdict = complete
      ? 'The set-up is complete.'
      : `The set-up is INCOMPLETE: quotes answer 500 until these are there: ${missing.join(', ')}.`;
    return {
      json: { ...view, complete, missing_fields: missing, products },
      text: `${facts({ ...view, 'active products': products })}\n\n${verdict}`,
    };
  });

  const create = merchants
    .command('create')
    .argument('<merchant>', '', newIdOf('merchant'))
    .description('Add a merchant; set-up may follow later.');
  const set = withId(merchants.command('set'), 'merchant', '<merchant>').description(
    "Change a merchant's set-up; what is not named stays.",
  );
  for (const command of [create, set])
    handle<SetUp>(withSetUp(command), deps, (call, merchantId = '') =>
      writeOne(call, command.name(), merchantId),
    );

  addImportCommand(merchants, deps, { noun: 'merchants', csv: null, run: importMerchants });
}

type Texts = 'tradingName' | 'summaryStyle' | 'depositFloorPercent' | 'depositFloorAmount' | 'partnerAccess';
interface SetUp extends Partial<Record<Texts, string>> {
  readonly fcaAuthorised?: 'yes' | 'no';
  readonly showProducts?: 'yes' | 'no';
  /** False: `--no-deposit-floor`. */
  readonly depositFloor?: boolean;
  readonly partners?: readonly string[];
}

function withSetUp(command: Command): Command {
  const choice = (flags: string, description: string, ...choices: string[]) =>
    new Option(flags, description).choices(choices);
  const yesNo = (flags: string, description: string) => choice(flags, description, 'yes', 'no');
  return command
    .option('--trading-name <name>', 'name on the summary')
    .addOption(yesNo('--fca-authorised <yes|no>', 'may communicate regulated credit promotions'))
    .addOption(yesNo('--show-products <yes|no>', 'give the product list as well as the summary'))
    .addOption(choice('--summary-style <style>', 'best offer, or the plain headline', 'offer', 'headline'))
    .option('--deposit-floor-percent <percent>', 'merchant-wide minimum deposit, share of the price')
    .option('--deposit-floor-amount <amount>', 'merchant-wide minimum deposit, fixed; the larger counts')
    .option('--no-deposit-floor', 'no merchant-wide minimum')
    .addOption(choice('--partner-access <access>', 'whom it exists for', 'all', 'restricted'))
    .option('--partners <ids>', 'whom it exists for when restricted, comma-separated', idsOf('partner'));
}

function rowFrom(merchantId: string, options: SetUp) {
  const isYes = (value: 'yes' | 'no' | undefined) => (value === undefined ? undefined : value === 'yes');
  const floor = { percent: options.depositFloorPercent, amount: options.depositFloorAmount };
  const floorGiven = floor.percent !== undefined || floor.amount !== undefined;
  return {
    merchant_id: merchantId,
    trading_name: options.tradingName,
    fca_authorised: isYes(options.fcaAuthorised),
    show_products: isYes(options.showProducts),
    summary_style: options.summaryStyle,
    deposit_floor: floorGiven ? floor : options.depositFloor === false ? null : undefined,
    partner_access: options.partnerAccess,
    partners: options.partners,
  };
}

async function writeOne({ db, deps, options }: Call<SetUp>, verb: string, merchantId: string) {
  const { actor } = deps;
  const { changes } = await db.transaction(async (tx) => {
    if (verb === 'create' && (await loadMerchant(tx, merchantId)) !== null)
      throw new Refused('conflict', `Merchant ${merchantId} already exists.`);
    const how = { actor, action: `merchants.${verb}`, dryRun: false };
    return importMerchants(tx, [rowFrom(merchantId, options)], how).catch((error: unknown) => {
      if (!(error instanceof ImportRefused)) throw error;
      // There is no file, so there are no rows.
      throw new ImportRefused(error.faults.map((fault) => ({ ...fault, row: null })));
    });
  });
  const { change, warning } = changes[0] ?? { change: 'unchanged', warning: null };
  const text = change === 'unchanged' ? 'was so already' : change;
  const warned = warning === null ? '' : `\nWARNING: ${merchantId}: ${warning}`;
  return {
    json: { merchant_id: merchantId, change, warning },
    text: `Merchant ${merchantId} ${text}.${warned}`,
  };
}
