import type { Command } from 'commander';
import { listOperatorEvents } from '../db/audit/operator-events';
import { describeOperatorEvent, OPERATOR_EVENT_KINDS } from '../domain/operator-event';
import type { OperatorEventKind } from '../domain/operator-event';
import { environmentOption, inPages, paged, spanOf, withSpan, wordsOption, type Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { idOf } from './ids';
import { listed, snakeCased } from './output';

const EXAMPLES = `
  ops events list --since 2d
  ops events list --kind endpoint_disabled,notifications_expired --json`;

const LONGEST_SPAN_DAYS = 400;
const DEFAULT_SPAN_DAYS = 7;

export function addEventCommands(program: Command, deps: OpsDeps): void {
  const about =
    'What the service noticed by itself: failing and disabled endpoints, expiring notifications, steps that lenders left out, what they contradicted.';
  const list = group(program, 'events', about, EXAMPLES)
    .command('list')
    .description('Events, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .addOption(wordsOption('--kind <kinds>', 'only these', OPERATOR_EVENT_KINDS));
  withSpan(list, 'happened from then on', `at most ${LONGEST_SPAN_DAYS}d; default: ${DEFAULT_SPAN_DAYS}d`);
  type Options = Page<number> & { kind?: readonly OperatorEventKind[] };
  handle<Options>(inPages(list, 'event'), deps, async (call) => {
    const { partner: partnerId, kind: kinds, ...filter } = call.options;
    const span = await spanOf(call, LONGEST_SPAN_DAYS, DEFAULT_SPAN_DAYS);
    const found = await listOperatorEvents(call.db, { ...filter, partnerId, kinds, ...span });
    const answer = listed(found, snakeCased, {
      when: 'happened_at',
      partner: 'partner_id',
      env: 'environment',
      endpoint: 'endpoint_id',
      what: ({ kind, details }) => describeOperatorEvent(kind, details),
      event: 'kind',
      id: 'event_id',
    });
    return paged(call, answer, found.at(-1)?.eventId);
  });
}
