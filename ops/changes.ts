import type { Command } from 'commander';
import { findChange, listChanges } from '../db/audit/change-log';
import { Refused } from '../db/refused';
import { sinceOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { facts, listed, snakeCased } from './output';
import { inPages, paged, type Page } from './paging';

const LONGEST_SPAN_DAYS = 3_650;

interface ListOptions extends Page<number> {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly since?: number;
}

const EXAMPLES = `
Examples:
  ops changes list --partner P100001 --since 7d      its keys, endpoints, secrets and notifications too
  ops changes list --subject M123456
  ops changes show 4711                              all details
  ops changes list --action keys.revoke --json`;

/** `ops changes …` */
export function addChangeCommands(program: Command, deps: OpsDeps): void {
  const changes = program
    .command('changes')
    .description('The log of every change made through ops. It cannot be changed.')
    .addHelpText('after', EXAMPLES);
  const list = changes
    .command('list')
    .description('Changes, newest first.')
    .option('--subject <id>', 'of this partner, key, merchant or product only', idOf('subject'))
    .option(
      '--partner <partner>',
      'of this partner, its keys, endpoints, secrets, notifications and recoveries only',
      idOf('partner'),
    )
    .option('--actor <name>', 'by this user or key only', idOf('actor'))
    .option('--action <action>', 'of this kind only, such as keys.revoke')
    .option(...sinceOption(LONGEST_SPAN_DAYS, 'all'));
  handle<ListOptions>(inPages(list, 'change'), deps, async (call) => {
    const { partner: partnerId, since: sinceSeconds, ...filter } = call.options;
    const found = await listChanges(call.db, { ...filter, partnerId, sinceSeconds });
    const answer = listed(found, snakeCased, {
      change: 'change_id',
      when: 'changed_at',
      who: 'actor',
      login: 'login',
      what: 'action',
      subject: 'subject',
      details: ({ details }) => JSON.stringify(details),
    });
    return paged(call, answer, found, ({ changeId }) => changeId);
  });

  const show = changes
    .command('show')
    .argument('<change>', '', idOf('change'))
    .description('One change with all of its details.');
  handle(show, deps, async ({ db }, change = '') => {
    const found = await findChange(db, Number(change));
    if (found === null) throw new Refused('not_found', `Change ${change} does not exist.`);
    const view = snakeCased(found);
    const { details, ...rest } = view;
    const shown = Object.entries(details).map(
      ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    );
    return { json: view, text: facts([...Object.entries(rest), ...shown]) };
  });
}
