import type { Command } from 'commander';
import { createPartner, existingPartner, listPartners, switchPartner } from '../db/catalogue/partners';
import type { Partner, PartnerSwitch } from '../db/catalogue/partners';
import { countUnderWay, listPauses, pauseDeliveries, resumeDeliveries } from '../db/notifications/hold';
import type { DeliveryPause } from '../db/notifications/hold';
import { environmentOption } from './arguments';
import { changeAndLog, group, handle, type OpsDeps, type Owner } from './call';
import { newIdOf, withId } from './ids';
import { checkedName } from './import/row-schemas';
import { differences, facts, listed, pauseText, snakeCased } from './output';

const EXAMPLES = `
  ops partners create --name "Example Checkout"
  ops partners list --json
  ops partners pause-deliveries P100001 --environment live      no attempt begins until it is resumed
  ops partners disable P100001      all its keys answer 401 within a second`;

const STILL_DELIVERED =
  '\nIts keys answer 401 within a second. What its applications owe it is still delivered, and lenders still report: ' +
  'ops partners pause-deliveries stops its deliveries.';

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
    const called = (await listPartners(call.db)).filter(
      (one) => one.name.toLowerCase() === name.toLowerCase(),
    );
    const partner = await changeAndLog(call, 'partners.create', async (tx, log) => {
      const created = await createPartner(tx, { partnerId, name });
      await log(created.partnerId, { name });
      return created;
    });
    const also = called.map((one) => `\n${one.partnerId} has this name too.`).join('');
    const text = `Created partner ${partner.partnerId}, "${partner.name}".${also}`;
    return { json: snakeCased(partner), text };
  });

  handle(partners.command('list').description('All partners.'), deps, async ({ db }) => {
    const pauses = await listPauses(db);
    return listed(await listPartners(db), (one) => partnerView(one, pauses), {
      partner: 'partner_id',
      name: 'name',
      state: 'state',
      recovery: 'recovery',
      paused: (one) => pausesText(one, pauses),
      created: 'created_at',
    });
  });

  const show = withId(partners.command('show'), 'partner', '<partner>').description('One partner.');
  handle(show, deps, async ({ db }, partnerId = '') => {
    const [partner, pauses] = [await existingPartner(db, partnerId), await listPauses(db, partnerId)];
    const json = partnerView(partner, pauses);
    return { json, text: facts({ ...json, deliveries_paused: pausesText(partner, pauses) }) };
  });

  addSwitch('enable', { state: 'active' }, 'Let its keys work again.');
  addSwitch(
    'disable',
    { state: 'inactive' },
    'Make every key of the partner answer 401. Deliveries continue: pause-deliveries stops them.',
  );
  addSwitch('enable-recovery', { recovery: 'enabled' }, 'Let it have all that it missed sent again itself.');
  addSwitch(
    'disable-recovery',
    { recovery: 'disabled' },
    'No longer let it; a recovery of its own that is under way is stopped. Operators still can.',
  );

  addPause(
    'pause-deliveries',
    'Begin no attempt to the partner until it is resumed, neither a first one nor a retry.',
  );
  addPause('resume-deliveries', 'Let its deliveries continue where they were paused.');

  function addPause(verb: 'pause-deliveries' | 'resume-deliveries', description: string): void {
    const command = withId(partners.command(verb), 'partner', '<partner>')
      .description(description)
      .addOption(environmentOption('its deliveries there').makeOptionMandatory());
    handle<Owner>(command, deps, async (call, partnerId = '') => {
      const tenant = { partnerId, environment: call.options.environment };
      const pause = verb === 'pause-deliveries';
      const change = pause ? pauseDeliveries : resumeDeliveries;
      const changed = await changeAndLog(call, `partners.${verb}`, async (tx, log) => {
        const done = await change(tx, tenant, deps.actor);
        const fields = differences({ deliveries_paused: !pause }, { deliveries_paused: pause });
        if (done) await log(partnerId, { environment: tenant.environment, fields });
        return done;
      });
      const { waiting, sending } = await countUnderWay(call.db, tenant);
      const now = `Deliveries to ${partnerId} in ${tenant.environment} ${changed ? 'are now' : 'were already'} `;
      const rest = pause
        ? `paused: ${waiting} wait. Attempts that have been sent are finished and recorded: ${sending} now.`
        : `${changed ? 'resumed' : 'running'}: ${waiting} wait, ${sending} are being sent.`;
      return { json: { ...snakeCased(tenant), paused: pause, changed, waiting, sending }, text: now + rest };
    });
  }

  function addSwitch(verb: string, to: PartnerSwitch, description: string): void {
    const command = withId(partners.command(verb), 'partner', '<partner>').description(description);
    handle(command, deps, async (call, partnerId = '') => {
      const { changed, partner } = await changeAndLog(call, `partners.${verb}`, async (tx, log) => {
        const done = await switchPartner(tx, partnerId, to);
        if (done.changed) await log(partnerId, { fields: differences({ ...done.was }, { ...to }) });
        return done;
      });
      const now = to.state ?? `with recovery ${to.recovery}`;
      const still = verb === 'disable' ? STILL_DELIVERED : '';
      const text = `Partner ${partnerId} ${changed ? 'is now' : 'was already'} ${now}.${still}`;
      return { json: { ...snakeCased(partner), changed }, text };
    });
  }
}

const pausesOf = ({ partnerId }: Partner, pauses: readonly DeliveryPause[]) =>
  pauses.filter((pause) => pause.partnerId === partnerId);

const partnerView = (partner: Partner, pauses: readonly DeliveryPause[]) => ({
  ...snakeCased(partner),
  deliveries_paused: pausesOf(partner, pauses).map(({ partnerId: _, ...pause }) => snakeCased(pause)),
});

const pausesText = (partner: Partner, pauses: readonly DeliveryPause[]) =>
  pausesOf(partner, pauses).map(pauseText).join(', ') || null;
