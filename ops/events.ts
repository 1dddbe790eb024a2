import type { Command } from 'commander';
import { listOperatorEvents, type RecordedEvent } from '../db/audit/operator-events';
import {
  describeOperatorEvent,
  OPERATOR_EVENT_KINDS,
  type OperatorEventKind,
} from '../domain/operator-event';
import { environmentOption, limitOption, sinceOption, wholeNumber, wordsOf } from './arguments';
import { environmentOf, handle, limitOf, numberOption, textOption, type OpsDeps } from './call';
import { listed } from './output';
import { paged } from './paging';

const EXAMPLES = `
Examples:
  ops events list --since 2d
  ops events list --kind endpoint_disabled,notifications_expired --json`;

const LONGEST_SPAN_DAYS = 400;
const DEFAULT_SPAN_SECONDS = 7 * 86_400;

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
    .option('--partner <partner>', 'of this partner only')
    .addOption(environmentOption('of this environment only'))
    .option(
      '--kind <kinds>',
      `of these kinds only: ${OPERATOR_EVENT_KINDS.join(', ')}`,
      wordsOf(OPERATOR_EVENT_KINDS),
    )
    .option(...sinceOption(LONGEST_SPAN_DAYS, '7d'))
    .option(
      '--after <event>',
      'only those behind this event in the list: the next page',
      wholeNumber(1, 999_999_999),
    )
    .option(...limitOption(50));
  handle(list, deps, async (call) => {
    const found = await listOperatorEvents(call.db, {
      partnerId: textOption(call, 'partner'),
      environment: environmentOf(call),
      kinds: call.options['kind'] as OperatorEventKind[] | undefined,
      sinceSeconds: numberOption(call, 'since') ?? DEFAULT_SPAN_SECONDS,
      after: numberOption(call, 'after'),
      limit: limitOf(call),
    });
    const answer = listed(found, view, {
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

const view = (one: RecordedEvent) => ({
  event_id: one.eventId,
  happened_at: one.happenedAt,
  kind: one.kind,
  partner_id: one.partnerId,
  environment: one.environment,
  endpoint_id: one.endpointId,
  details: one.details,
});
