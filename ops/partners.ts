import type { Command } from 'commander';
import {
  createPartner,
  findPartner,
  listPartners,
  setPartnerState,
  type Partner,
  type PartnerState,
} from '../db/catalogue/partners';
import { Refused } from '../db/refused';
import { handle, textOption, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { text as textField } from './import/fields';
import { facts, listed } from './output';

const EXAMPLES = `
Examples:
  ops partners create --name "Example Checkout"
  ops partners list --json
  ops partners deactivate P100001      all its keys answer 401 within a second`;

/** `ops partners …` */
export function addPartnerCommands(program: Command, deps: OpsDeps): void {
  const partners = program
    .command('partners')
    .description('Who integrates with the service.')
    .addHelpText('after', EXAMPLES);

  const create = partners
    .command('create')
    .description('Add a partner, active at once.')
    .requiredOption('--name <name>', 'name for people')
    .option('--id <partner>', 'P and six digits; default: the next free one');
  handle(create, deps, async (call) => {
    const name = checkedName(textOption(call, 'name') ?? '');
    const partnerId = textOption(call, 'id') ?? null;
    const partner = await changeAndLog(call, 'partners.create', async (tx, log) => {
      const created = await createPartner(tx, { partnerId, name });
      await log(created.partnerId, { name });
      return created;
    });
    return { json: view(partner), text: `Created partner ${partner.partnerId}, "${partner.name}".` };
  });

  handle(partners.command('list').description('All partners.'), deps, async ({ db }) => {
    return listed(await listPartners(db), view, {
      partner: 'partner_id',
      name: 'name',
      state: 'state',
      created: 'created_at',
    });
  });

  const show = partners.command('show').argument('<partner>').description('One partner.');
  handle(show, deps, async ({ db }, partnerId = '') => {
    const partner = await findPartner(db, partnerId);
    if (partner === null) throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
    return { json: view(partner), text: facts(Object.entries(view(partner))) };
  });

  addSwitch('activate', 'active', 'Let its keys work again.');
  addSwitch('deactivate', 'inactive', 'Make every key of the partner answer 401.');

  function addSwitch(verb: string, state: PartnerState, description: string): void {
    const command = partners.command(verb).argument('<partner>').description(description);
    handle(command, deps, async (call, partnerId = '') => {
      const { changed, partner } = await changeAndLog(call, `partners.${verb}`, async (tx, log) => {
        const done = await setPartnerState(tx, partnerId, state);
        if (done.changed) await log(partnerId, { state });
        return done;
      });
      const text = `Partner ${partnerId} ${changed ? 'is now' : 'was already'} ${state}.`;
      return { json: { ...view(partner), changed }, text };
    });
  }
}

function checkedName(name: string): string {
  const parsed = textField(120).safeParse(name);
  if (!parsed.success)
    throw new Refused('invalid', `The name ${parsed.error.issues[0]?.message ?? 'is wrong'}.`);
  return parsed.data;
}

const view = ({ partnerId, name, state, createdAt }: Partner) => ({
  partner_id: partnerId,
  name,
  state,
  created_at: createdAt,
});
