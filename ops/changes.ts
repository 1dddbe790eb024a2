import type { Command } from 'commander';
import { findChange, listChanges, type RecordedChange } from '../db/audit/change-log';
import { Refused } from '../db/refused';
import { limitOption, sinceOption, wholeNumber } from './arguments';
import { handle, limitOf, numberOption, textOption, type OpsDeps } from './call';
import { facts, listed } from './output';
import { paged } from './paging';

const LONGEST_SPAN_DAYS = 3_650;
const HIGHEST_ID = 999_999_999;

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
    .option('--subject <id>', 'of this partner, key, merchant or product only')
    .option(
      '--partner <partner>',
      'of this partner, its keys, endpoints, secrets, notifications and recoveries only',
    )
    .option('--actor <name>', 'by this user or key only')
    .option('--action <action>', 'of this kind only, such as keys.revoke')
    .option(...sinceOption(LONGEST_SPAN_DAYS, 'all'))
    .option(
      '--after <change>',
      'only those behind this change in the list: the next page',
      wholeNumber(1, HIGHEST_ID),
    )
    .option(...limitOption(50));
  handle(list, deps, async (call) => {
    const found = await listChanges(call.db, {
      subject: textOption(call, 'subject'),
      actor: textOption(call, 'actor'),
      action: textOption(call, 'action'),
      partnerId: textOption(call, 'partner'),
      sinceSeconds: numberOption(call, 'since'),
      after: numberOption(call, 'after'),
      limit: limitOf(call),
    });
    const answer = listed(found, view, {
      change: 'change_id',
      when: 'changed_at',
      who: 'actor',
      what: 'action',
      subject: 'subject',
      details: ({ details }) => JSON.stringify(details),
    });
    return paged(call, answer, found, ({ changeId }) => changeId);
  });

  const show = changes
    .command('show')
    .argument('<change>')
    .description('One change with all of its details.');
  handle(show, deps, async ({ db }, change = '') => {
    const found = await findChange(db, wholeNumber(1, HIGHEST_ID)(change));
    if (found === null) throw new Refused('not_found', `Change ${change} does not exist.`);
    const { details, ...rest } = view(found);
    const shown = Object.entries(details).map(
      ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    );
    return { json: view(found), text: facts([...Object.entries(rest), ...shown]) };
  });
}

const view = ({ changeId, changedAt, ...rest }: RecordedChange) => ({
  change_id: changeId,
  changed_at: changedAt,
  ...rest,
});
