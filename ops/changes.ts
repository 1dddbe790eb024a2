import type { Command } from 'commander';
import { listChanges, type RecordedChange } from '../db/audit/change-log';
import { limitOption } from './arguments';
import { handle, limitOf, textOption, type OpsDeps } from './call';
import { listed } from './output';

const EXAMPLES = `
Examples:
  ops changes list --subject M123456
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
    .option('--actor <name>', 'by this user only')
    .option('--action <action>', 'of this kind only, such as keys.revoke')
    .option(...limitOption(50));
  handle(list, deps, async (call) => {
    const found = await listChanges(call.db, {
      subject: textOption(call, 'subject'),
      actor: textOption(call, 'actor'),
      action: textOption(call, 'action'),
      limit: limitOf(call),
    });
    return listed(found, view, {
      change: 'change_id',
      when: 'changed_at',
      who: 'actor',
      what: 'action',
      subject: 'subject',
      details: ({ details }) => brief(details),
    });
  });
}

const view = ({ changeId, changedAt, ...rest }: RecordedChange) => ({
  change_id: changeId,
  changed_at: changedAt,
  ...rest,
});

/** Enough to recognise a change in a table; --json has it all. */
const LONGEST_DETAILS = 100;

function brief(details: unknown): string {
  const text = JSON.stringify(details);
  return text.length <= LONGEST_DETAILS ? text : `${text.slice(0, LONGEST_DETAILS - 1)}…`;
}
