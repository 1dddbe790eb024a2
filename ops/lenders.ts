import type { Command } from 'commander';
import { addLender, changeLender, listLenders, type Lender } from '../db/applications/lenders';
import { Refused } from '../db/refused';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { listed, snakeCased } from './output';

const EXAMPLES = `
Examples:
  ops lenders add lender_c --name 'Lender C' --format '[A-Z]{2}-\\d{4,6}'
  ops lenders set lender_c --format '[A-Z]{2}\\d{6}'

A format is made of characters, \\d and classes such as [A-Z0-9], each with ?, {n} or {n,m} behind it.`;

const FORMAT = 'form of its references, 64 characters at most';

/** `ops lenders …` */
export function addLenderCommands(program: Command, deps: OpsDeps): void {
  const lenders = program
    .command('lenders')
    .description('Lenders whose integrations may open applications.')
    .addHelpText('after', EXAMPLES);

  const add = lenders
    .command('add')
    .argument('<lender>', 'its key: what events will call it')
    .description('Add a lender.')
    .requiredOption('--name <name>', 'what it is called')
    .requiredOption('--format <format>', FORMAT);
  handle<{ name: string; format: string }>(add, deps, async (call, lender = '') => {
    const { name, format: referenceFormat } = call.options;
    const added = await changeAndLog(call, 'lenders.add', async (tx, log) => {
      const done = await addLender(tx, { lender, name, referenceFormat });
      await log(lender, detailsOf(done));
      return done;
    });
    return {
      json: snakeCased(added),
      text: `Added ${lender}. Its references look like ${added.referenceFormat}.`,
    };
  });

  const set = lenders
    .command('set')
    .argument('<lender>')
    .description('Change what a lender is called, or the form that new references may have.')
    .option('--name <name>', 'what it is called')
    .option('--format <format>', FORMAT);
  handle<{ name?: string; format?: string }>(set, deps, async (call, lender = '') => {
    const { name, format: referenceFormat } = call.options;
    if (name === undefined && referenceFormat === undefined) {
      throw new Refused('invalid', 'Say what to change: --name or --format.');
    }
    const changed = await changeAndLog(call, 'lenders.set', async (tx, log) => {
      const done = await changeLender(tx, lender, {
        ...(name !== undefined && { name }),
        ...(referenceFormat !== undefined && { referenceFormat }),
      });
      await log(lender, detailsOf(done));
      return done;
    });
    return {
      json: snakeCased(changed),
      text: `${lender} is ${changed.name}; its references look like ${changed.referenceFormat}.`,
    };
  });

  const list = lenders.command('list').description('Lenders, and the form of their references.');
  handle(list, deps, async ({ db }) => {
    return listed(await listLenders(db), snakeCased, {
      lender: 'lender',
      name: 'name',
      format: 'reference_format',
      created: 'created_at',
    });
  });
}

const detailsOf = ({ name, referenceFormat }: Lender) => ({ name, reference_format: referenceFormat });
