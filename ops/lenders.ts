import type { Command } from 'commander';
import { addLender, changeLender, listLenders, type Lender } from '../db/applications/lenders';
import { Refused } from '../db/refused';
import { LONGEST_PRODUCT_NAME } from '../domain/product';
import { changeAndLog, group, handle, type OpsDeps } from './call';
import { newIdOf, withId } from './ids';
import { checkedName } from './import/row-schemas';
import { takeImportTurn } from './import/rows';
import { differences, listed, snakeCased } from './output';

const EXAMPLES = `
  ops lenders create lender_c --name 'Lender C' --reference-format '[A-Z]{2}-\\d{4,6}'
  ops lenders set lender_c --name 'Lender C plc'     a new version of each of its products
  ops lenders set lender_c --reference-format '[A-Z]{2}\\d{6}'

A format is made of characters, \\d and classes such as [A-Z0-9], each with ?, {n} or {n,m} behind it.`;

const FORMAT = 'form of its references, 64 characters at most';

export function addLenderCommands(program: Command, deps: OpsDeps): void {
  const lenders = group(
    program,
    'lenders',
    'Lenders: whose products merchants have, and whose integrations open applications for them.',
    EXAMPLES,
  );

  const create = lenders
    .command('create')
    .argument('<lender>', 'its key: what events will call it', newIdOf('lender'))
    .description('Add a lender.')
    .requiredOption('--name <name>', 'what shoppers are shown')
    .requiredOption('--reference-format <format>', FORMAT);
  handle<{ name: string; referenceFormat: string }>(create, deps, async (call, lender = '') => {
    const { referenceFormat } = call.options;
    const name = checkedName(call.options.name, LONGEST_PRODUCT_NAME);
    const added = await changeAndLog(call, 'lenders.create', async (tx, log) => {
      const done = await addLender(tx, { lender, name, referenceFormat });
      await log(lender, detailsOf(done));
      return done;
    });
    const text = `Created lender ${lender}. Its references look like ${added.referenceFormat}.`;
    return { json: snakeCased(added), text };
  });

  const set = withId(lenders.command('set'), 'lender', '<lender>')
    .description('Change what a lender is called, or the form that new references may have.')
    .option('--name <name>', 'what shoppers are shown, in quotes from now on')
    .option('--reference-format <format>', FORMAT);
  handle<{ name?: string; referenceFormat?: string }>(set, deps, async (call, lender = '') => {
    const { name, referenceFormat } = call.options;
    if (name === undefined && referenceFormat === undefined)
      throw new Refused('invalid', 'Say what to change: --name or --reference-format.');
    const { changed, renewed } = await changeAndLog(call, 'lenders.set', async (tx, log) => {
      // An import under way would write products with the old name.
      await takeImportTurn(tx);
      const done = await changeLender(tx, lender, {
        ...(name !== undefined && { name: checkedName(name, LONGEST_PRODUCT_NAME) }),
        ...(referenceFormat !== undefined && { referenceFormat }),
      });
      const fields = differences(detailsOf(done.was), detailsOf(done.changed));
      await log(lender, { fields, products: done.renewed.length });
      for (const { productId, merchantId, creditProduct, version, lenderNameBefore } of done.renewed) {
        const product = { merchant_id: merchantId, credit_product: creditProduct };
        const fields = differences({ lender_name: lenderNameBefore }, { lender_name: name });
        await log(productId, { ...product, change: 'updated', version, fields });
      }
      return done;
    });
    const versions = renewed.length === 0 ? '' : ` New versions of products: ${renewed.length}.`;
    return {
      json: { ...snakeCased(changed), new_versions: renewed.length },
      text: `${lender} is ${changed.name}; its references look like ${changed.referenceFormat}.${versions}`,
    };
  });

  const list = lenders.command('list').description('Lenders, and the form of their references.');
  handle(list, deps, async ({ db }) =>
    listed(await listLenders(db), snakeCased, {
      lender: 'lender',
      name: 'name',
      'reference format': 'reference_format',
      created: 'created_at',
    }),
  );
}

const detailsOf = ({ name, referenceFormat }: Lender) => ({ name, reference_format: referenceFormat });
