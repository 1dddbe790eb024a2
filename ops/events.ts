import type { Command } from 'commander';
import { listOperatorEvents } from '../db/audit/operator-events';
import {
  describeOperatorEvent,
  OPERATOR_EVENT_KINDS,
  type OperatorEventKind,
} from '../domain/operator-event';
import { environmentOption, sinceOption, wordsOf, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { listed, snakeCased } from './output';
import { inPages, paged, type Page } from './paging';

const EXAMPLES = `
Examples:
  ops events list --since 2d
  ops events list --kind endpoint_disabled,notifications_expired --json`;

const LONGEST_SPAN_DAYS = 400;
const DEFAULT_SPAN_SECONDS = 7 * 86_400;

interface ListOptions extends Page<number> {
  readonly kind?: readonly OperatorEventKind[];
  readonly since?: number;
}

/** `ops events …` */
export function addEventCommands(program: Command, deps: OpsDeps): void {
  const events = program
    .command('events')
    .description(
      'What the service noticed by itself: failing and disabled endpoints, expiring notifications, steps that lenders left out.',
    )
    .addHelpText('after', EXAMPLES);
  const list = events
    .command('list')
    .description('Events, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option(
      '--kind <kinds>',
      `of these kinds only: ${OPERATOR_EVENT_KINDS.join(', ')}`,
      wordsOf(OPERATOR_EVENT_KINDS),
    )
    .option(...sinceOption(LONGEST_SPAN_DAYS, '7d'));
  handle<ListOptions>(inPages(list, 'event'), deps, async (call) => {
    const { partner: partnerId, kind: kinds, since = DEFAULT_SPAN_SECONDS, ...filter } = call.options;
    const found = await listOperatorEvents(call.db, { ...filter, partnerId, kinds, sinceSeconds: since });
    const answer = listed(found, snakeCased, {
      when: 'happened_at',
      partner: 'partner_id',
      env: 'environment',
      what: ({ kind, details }) => describeOperatorEvent(kind, details),
      event: 'kind',
      endpoint: 'endpoint_id',
      id: 'event_id',
    });
    return paged(call, answer, found, ({ eventId }) => eventId);
  });
}
