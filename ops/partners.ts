import type { Command } from 'commander';
import {
  createPartner,
  existingPartner,
  listPartners,
  setPartnerRecovery,
  setPartnerState,
  type PartnerRecoveryState,
  type PartnerState,
} from '../db/catalogue/partners';
import { Refused } from '../db/refused';
import { idOf, newIdOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { text as textField } from './import/row-schemas';
import { facts, listed, snakeCased } from './output';

const EXAMPLES = `
Examples:
  ops partners create --name "Example Checkout"
  ops partners list --json
  ops partners deactivate P100001      all its keys answer 401 within a second`;

const STILL_DELIVERED =
  'Its keys answer 401 within a second. What its applications owe it is still delivered, and lenders still report: ' +
  'ops webhooks disable holds its deliveries.';

type Switched = { readonly state: PartnerState } | { readonly recovery: PartnerRecoveryState };

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
    .option('--id <partner>', 'P and six digits; default: the next free one', newIdOf('partner'));
  handle<{ name: string; id?: string }>(create, deps, async (call) => {
    const name = checkedName(call.options.name);
    const { id: partnerId = null } = call.options;
    const partner = await changeAndLog(call, 'partners.create', async (tx, log) => {
      const created = await createPartner(tx, { partnerId, name });
      await log(created.partnerId, { name });
      return created;
    });
    return { json: snakeCased(partner), text: `Created partner ${partner.partnerId}, "${partner.name}".` };
  });

  handle(partners.command('list').description('All partners.'), deps, async ({ db }) => {
    return listed(await listPartners(db), snakeCased, {
      partner: 'partner_id',
      name: 'name',
      state: 'state',
      recovery: 'recovery',
      created: 'created_at',
    });
  });

  const show = partners
    .command('show')
    .argument('<partner>', '', idOf('partner'))
    .description('One partner.');
  handle(show, deps, async ({ db }, partnerId = '') => {
    const view = snakeCased(await existingPartner(db, partnerId));
    return { json: view, text: facts(Object.entries(view)) };
  });

  addSwitch('activate', { state: 'active' }, 'Let its keys work again.');
  addSwitch(
    'deactivate',
    { state: 'inactive' },
    'Make every key of the partner answer 401. Deliveries go on: webhooks disable stops them.',
  );
  addSwitch('enable-recovery', { recovery: 'enabled' }, 'Let it have all that it missed sent again itself.');
  addSwitch(
    'disable-recovery',
    { recovery: 'disabled' },
    'No longer let it; a recovery of its own that is under way is stopped. Operators still can.',
  );

  function addSwitch(verb: string, to: Switched, description: string): void {
    const command = partners
      .command(verb)
      .argument('<partner>', '', idOf('partner'))
      .description(description);
    handle(command, deps, async (call, partnerId = '') => {
      const { changed, partner } = await changeAndLog(call, `partners.${verb}`, async (tx, log) => {
        const done =
          'state' in to
            ? await setPartnerState(tx, partnerId, to.state)
            : await setPartnerRecovery(tx, partnerId, to.recovery);
        if (done.changed) await log(partnerId, { ...to });
        return done;
      });
      const now = 'state' in to ? to.state : `with recovery ${to.recovery}`;
      const goesOn = verb === 'deactivate' ? `\n${STILL_DELIVERED}` : '';
      const text = `Partner ${partnerId} ${changed ? 'is now' : 'was already'} ${now}.${goesOn}`;
      return { json: { ...snakeCased(partner), changed }, text };
    });
  }
}

function checkedName(name: string): string {
  const parsed = textField(120).safeParse(name);
  if (!parsed.success)
    throw new Refused('invalid', `The name ${parsed.error.issues[0]?.message ?? 'is wrong'}.`);
  return parsed.data;
}
