import { Option, type Command } from 'commander';
import {
  findApplication,
  listApplications,
  listWaitingEvents,
  type Application,
  type ApplicationStory,
  type LenderEvent,
} from '../db/applications/applications';
import { Refused } from '../db/refused';
import { APPLICATION_STATES, type ApplicationState } from '../domain/application-states';
import { formatPence } from '../domain/money';
import { environmentOption, sinceOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { facts, listed, snakeCased, withTables, type Answer } from './output';
import { inPages, paged, type Page } from './paging';

const EXAMPLES = `
Examples:
  ops applications list --partner P100001 --state accepted
  ops applications list --lender lender_a --reference AB12CD34
  ops applications list --merchant-reference ORDER-1042
  ops applications list --waiting      those with an event that waits for the steps before it
  ops applications show app_01K…       what the lender told, and what the partner is told`;

/** Applications are read back to front through their ids, so the span bounds the work. */
const LONGEST_SPAN_DAYS = 3_650;
const DEFAULT_SPAN_SECONDS = 30 * 86_400;

interface ListOptions extends Page {
  readonly lender?: string;
  readonly reference?: string;
  readonly merchantReference?: string;
  readonly quote?: string;
  readonly state?: ApplicationState;
  readonly waiting?: true;
  readonly since?: number;
}

/** `ops applications …` */
export function addApplicationCommands(program: Command, deps: OpsDeps): void {
  const applications = program
    .command('applications')
    .description('Credit applications and their history.')
    .addHelpText('after', EXAMPLES);

  const list = applications
    .command('list')
    .description('Recent applications, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option('--lender <lender>', 'with this lender only', idOf('lender'))
    .option('--reference <reference>', "with this reference of the lender's only")
    .option('--merchant-reference <reference>', "with this reference of the partner's only")
    .option('--quote <quote-id>', 'from this quote only', idOf('quote'))
    .addOption(new Option('--state <state>', 'in this state only').choices(APPLICATION_STATES))
    .option('--waiting', 'with an event that waits for the steps before it only')
    .option(
      ...sinceOption(
        LONGEST_SPAN_DAYS,
        '30d, with --waiting or a reference all',
        'how far back they were opened',
      ),
    );
  handle<ListOptions>(inPages(list, 'application'), deps, async (call) => {
    const { waiting = false, reference, merchantReference, quote, since, ...given } = call.options;
    const few = [reference, merchantReference, quote].some((one) => one !== undefined);
    const byDefault = waiting || few ? LONGEST_SPAN_DAYS * 86_400 : DEFAULT_SPAN_SECONDS;
    const found = await listApplications(call.db, {
      waiting,
      partnerId: given.partner,
      environment: given.environment,
      lender: given.lender,
      lenderReference: reference,
      merchantReference,
      quoteId: quote,
      after: given.after,
      state: given.state,
      sinceSeconds: since ?? byDefault,
      limit: given.limit,
    });
    const events = await listWaitingEvents(
      call.db,
      found.map(({ applicationId }) => applicationId),
    );
    const waitingIn = ({ applicationId }: Application) =>
      events.filter((event) => event.applicationId === applicationId);
    const answer = listed(found, (one) => ({ ...view(one), waiting: waitingIn(one).map(waitingView) }), {
      application: 'credit_application_id',
      partner: 'partner_id',
      environment: 'environment',
      lender: 'lender',
      reference: 'lender_reference',
      state: 'state',
      waiting: (one) => waitingIn(one).map(waitingText).join('; '),
      events: 'sequence',
      opened: 'created_at',
      'merchant reference': 'merchant_reference',
      quote: 'service_quote_id',
    });
    return paged(call, answer, found, ({ applicationId }) => applicationId);
  });

  const show = applications
    .command('show')
    .argument('<application-id>', '', idOf('application'))
    .description('One application: all that its lender told, and all that its partner is told.');
  handle(show, deps, async ({ db }, applicationId = '') => {
    const story = await findApplication(db, applicationId, 'all');
    if (story === null) throw new Refused('not_found', `Application ${applicationId} does not exist.`);
    return storyAnswer(story);
  });
}

function view(application: Application) {
  const { applicationId, quoteId, loanPence, depositPence, stateOccurredAt: _, ...rest } = application;
  return {
    credit_application_id: applicationId,
    service_quote_id: quoteId,
    loan_amount: formatPence(loanPence),
    customer_deposit: formatPence(depositPence),
    ...snakeCased(rest),
  };
}

const waitingView = (one: LenderEvent) => ({
  lender_event_id: one.lenderEventId,
  status: one.status,
  occurred_at: one.occurredAt,
  received_at: one.receivedAt,
  waits_until: one.waitsUntil,
});

const waitingText = ({ status, receivedAt, waitsUntil }: LenderEvent) =>
  `${status} since ${receivedAt.toISOString()} until ${waitsUntil?.toISOString()}`;

/** What the lender told, in the order of arrival. */
const told = (events: ApplicationStory['events']) =>
  listed(
    events,
    (one) => ({
      lender_event_id: one.lenderEventId,
      status: one.status,
      occurred_at: one.occurredAt,
      received_at: one.receivedAt,
      outcome_on_arrival: one.verdict,
      previous_state: one.previousState,
      sequence: one.sequence,
      applied_at: one.appliedAt,
      waits_until: one.waitsUntil,
      service_key_id: one.serviceKeyId,
      request_id: one.requestId,
    }),
    {
      received: 'received_at',
      status: 'status',
      "lender's event": 'lender_event_id',
      'on arrival': 'outcome_on_arrival',
      'waits until': 'waits_until',
      sequence: 'sequence',
      applied: 'applied_at',
      occurred: 'occurred_at',
    },
  );

/** What the partner is told. */
const sent = (notifications: ApplicationStory['notifications']) =>
  listed(notifications, snakeCased, {
    sequence: 'sequence',
    event: 'event_type',
    state: ({ state, endReason }) => (endReason === null ? state : `${state}: ${endReason}`),
    notification: 'notification_id',
    delivered: 'delivered_at',
    made: 'created_at',
  });

function storyAnswer({ application, events, notifications }: ApplicationStory): Answer {
  const [fromLender, toPartner] = [told(events), sent(notifications)];
  return {
    json: { ...view(application), lender_events: fromLender.json, notifications: toPartner.json },
    ...withTables((textOf) =>
      [
        facts(Object.entries(view(application))),
        '',
        'What the lender told, in the order of arrival:',
        textOf(fromLender),
        '',
        'What the partner is told:',
        textOf(toPartner),
      ].join('\n'),
    ),
  };
}
