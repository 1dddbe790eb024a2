import type { Command } from 'commander';
import { findChange, listChanges } from '../db/audit/change-log';
import { inPages, paged, spanOf, withSpan, type Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { idOf, withId } from './ids';
import { differenceText, existing, facts, listed, snakeCased, type Difference } from './output';

const EXAMPLES = `
  ops changes list --partner P100001 --since 7d      its keys, endpoints, secrets and notifications too
  ops changes list --subject M123456
  ops changes show 4711                              all details; of a price its old and new values
  ops changes list --action keys.revoke --json`;

const LONGEST_SPAN_DAYS = 3_650;

interface ListOptions extends Page<number> {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
}

export function addChangeCommands(program: Command, deps: OpsDeps): void {
  const changes = group(program, 'changes', 'The log of every change, which cannot be changed.', EXAMPLES);

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
    .option('--action <action>', 'of this kind only, such as keys.revoke');
  withSpan(list, 'made from then on', `at most ${LONGEST_SPAN_DAYS}d; default: all`);
  handle<ListOptions>(inPages(list, 'change'), deps, async (call) => {
    const { partner: partnerId, ...filter } = call.options;
    const span = await spanOf(call, LONGEST_SPAN_DAYS, LONGEST_SPAN_DAYS);
    const found = await listChanges(call.db, { ...filter, partnerId, ...span });
    const answer = listed(found, snakeCased, {
      change: 'change_id',
      when: 'changed_at',
      who: 'actor',
      login: 'login',
      what: 'action',
      subject: 'subject',
      details: ({ details }) => JSON.stringify(details),
    });
    return paged(call, answer, found.at(-1)?.changeId);
  });

  const show = withId(changes.command('show'), 'change', '<change>').description(
    'One change with all of its details.',
  );
  handle(show, deps, async ({ db }, change = '') => {
    const view = snakeCased(existing(await findChange(db, Number(change)), `Change ${change}`));
    const { details, ...rest } = view;
    const { fields, ...others } = details;
    if (!areDifferences(fields)) return { json: view, text: facts({ ...rest, ...details }) };
    const values = fields.map((one) => `    ${differenceText(one)}`);
    return { json: view, text: [facts({ ...rest, ...others }), ...values].join('\n') };
  });
}

/** Any login may write lines of any form. */
const areDifferences = (found: unknown): found is readonly Difference[] =>
  Array.isArray(found) &&
  found.every((one: Partial<Difference> | null) => one?.from !== undefined && one.to !== undefined);
