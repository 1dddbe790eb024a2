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
import { changeAndLog, group, handle, type OpsDeps } from './call';
import { newIdOf, withId } from './ids';
import { checkedName } from './import/row-schemas';
import { facts, listed, snakeCased } from './output';

const EXAMPLES = `
Examples:
  ops partners create --name "Example Checkout"
  ops partners list --json
  ops partners deactivate P100001      all its keys answer 401 within a second`;

const STILL_DELIVERED =
  '\nIts keys answer 401 within a second. What its applications owe it is still delivered, and lenders still report: ' +
  'ops webhooks disable holds its deliveries.';

type Switched = { readonly state: PartnerState } | { readonly recovery: PartnerRecoveryState };

export function addPartnerCommands(program: Command, deps: OpsDeps): void {
  const partners = group(program, 'partners', 'Who integrates with the service.', EXAMPLES);

  const create = partners
    .command('create')
    .description('Add a partner, active at once.')
    .requiredOption('--name <name>', 'name for people')
    .option('--id <partner>', 'P and six digits; default: the next free one', newIdOf('partner'));
  handle<{ name: string; id?: string }>(create, deps, async (call) => {
    const name = checkedName(call.options.name, 120);
    const { id: partnerId = null } = call.options;
    const partner = await changeAndLog(call, 'partners.create', async (tx, log) => {
      const created = await createPartner(tx, { partnerId, name });
      await log(created.partnerId, { name });
      return created;
    });
    return { json: snakeCased(partner), text: `Created partner ${partner.partnerId}, "${partner.name}".` };
  });

  handle(partners.command('list').description('All partners.'), deps, async ({ db }) =>
    listed(await listPartners(db), snakeCased, {
      partner: 'partner_id',
      name: 'name',
      state: 'state',
      recovery: 'recovery',
      created: 'created_at',
    }),
  );

  const show = withId(partners.command('show'), 'partner', '<partner>').description('One partner.');
  handle(show, deps, async ({ db }, partnerId = '') => {
    const json = snakeCased(await existingPartner(db, partnerId));
    return { json, text: facts(json) };
  });

  addSwitch('activate', { state: 'active' }, 'Let its keys work again.');
  addSwitch(
    'deactivate',
    { state: 'inactive' },
    'Make every key of the partner answer 401. Deliveries continue: webhooks disable stops them.',
  );
  addSwitch('enable-recovery', { recovery: 'enabled' }, 'Let it have all that it missed sent again itself.');
  addSwitch(
    'disable-recovery',
    { recovery: 'disabled' },
    'No longer let it; a recovery of its own that is under way is stopped. Operators still can.',
  );

  function addSwitch(verb: string, to: Switched, description: string): void {
    const command = withId(partners.command(verb), 'partner', '<partner>').description(description);
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
      const still = verb === 'deactivate' ? STILL_DELIVERED : '';
      const text = `Partner ${partnerId} ${changed ? 'is now' : 'was already'} ${now}.${still}`;
      return { json: { ...snakeCased(partner), changed }, text };
    });
  }
}
