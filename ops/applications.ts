import type { Command } from 'commander';
import { findApplication, listApplications, listWaitingEvents } from '../db/applications/applications';
import type { Application, ApplicationHistory, LenderEvent } from '../db/applications/applications';
import { operatorEventsOf } from '../db/audit/operator-events';
import { APPLICATION_STATES, type ApplicationState } from '../domain/application-states';
import { formatPence } from '../domain/money';
import { describeOperatorEvent } from '../domain/operator-event';
import { environmentOption, inPages, paged, spanOf, withSpan, wordsOption, type Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { idOf, withId } from './ids';
import { existing, facts, listed, utcText, printable, snakeCased, type Answer } from './output';

const EXAMPLES = `
  ops applications list --partner P100001 --state accepted
  ops applications list --lender lender_a --lender-reference AB12CD34
  ops applications list --merchant-reference ORDER-1042
  ops applications list --waiting      those with an event that waits for the steps before it
  ops applications show app_01K…       what the lender reported, and what the partner is sent`;

/** Applications are read back to front through their ids, so the span bounds the work. */
const LONGEST_SPAN_DAYS = 3_650;
const DEFAULT_SPAN_DAYS = 30;

interface ListOptions extends Page {
  readonly lenderReference?: string;
  readonly quote?: string;
  readonly state?: readonly ApplicationState[];
  readonly waiting?: true;
}

export function addApplicationCommands(program: Command, deps: OpsDeps): void {
  const applications = group(program, 'applications', 'Credit applications and their history.', EXAMPLES);

  const list = applications
    .command('list')
    .description('Recent applications, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option('--lender <lender>', 'with this lender only', idOf('lender'))
    .option('--lender-reference <reference>', "with this reference of the lender's only")
    .option('--merchant-reference <reference>', "with this reference of the partner's only")
    .option('--quote <quote-id>', 'from this quote only', idOf('quote'))
    .addOption(wordsOption('--state <states>', 'in these states only', APPLICATION_STATES))
    .option('--waiting', 'with an event that waits for the steps before it only');
  const limits = `at most ${LONGEST_SPAN_DAYS}d; default: ${DEFAULT_SPAN_DAYS}d, with --waiting or a reference all`;
  withSpan(list, 'opened from then on', limits);
  handle<ListOptions>(inPages(list, 'application'), deps, async (call) => {
    const { waiting = false, lenderReference, merchantReference, quote, ...given } = call.options;
    const few = waiting || [lenderReference, merchantReference, quote].some((one) => one !== undefined);
    const found = await listApplications(call.db, {
      ...(await spanOf(call, LONGEST_SPAN_DAYS, few ? LONGEST_SPAN_DAYS : DEFAULT_SPAN_DAYS)),
      waiting,
      partnerId: given.partner,
      environment: given.environment,
      lender: given.lender,
      lenderReference,
      merchantReference,
      quoteId: quote,
      after: given.after,
      states: given.state,
      limit: given.limit,
    });
    const ids = found.map(({ applicationId }) => applicationId);
    const events = await listWaitingEvents(call.db, ids);
    const waitingIn = ({ applicationId }: Application) =>
      events.filter((event) => event.applicationId === applicationId);
    const answer = listed(found, (one) => ({ ...view(one), waiting: waitingIn(one).map(waitingView) }), {
      application: 'credit_application_id',
      partner: 'partner_id',
      environment: 'environment',
      lender: 'lender',
      'lender reference': 'lender_reference',
      state: 'state',
      simulated: 'simulated',
      waiting: (one) => waitingIn(one).map(waitingText).join('; '),
      events: 'sequence',
      opened: 'created_at',
      'merchant reference': 'merchant_reference',
      quote: 'service_quote_id',
    });
    return paged(call, answer, found.at(-1)?.applicationId);
  });

  const show = withId(applications.command('show'), 'application', '<application-id>').description(
    'One application: all that its lender reported, and all that its partner is sent.',
  );
  handle(show, deps, async ({ db }, applicationId = '') => {
    const story = existing(await findApplication(db, applicationId, 'all'), `Application ${applicationId}`);
    return storyAnswer(story, await operatorEventsOf(db, story.application));
  });
}

function view(application: Application) {
  const { applicationId, quoteId, loanPence, depositPence, simulated, serviceKeyId, ...others } = application;
  const { stateOccurredAt: _, ...rest } = others;
  return {
    credit_application_id: applicationId,
    service_quote_id: quoteId,
    loan_amount: formatPence(loanPence),
    customer_deposit: formatPence(depositPence),
    ...snakeCased(rest),
    key_id: serviceKeyId,
    /** Whether its partner plays the lender, in the sandbox. */
    simulated: simulated !== null,
  };
}

function eventView(event: LenderEvent) {
  const { eventNumber, applicationId, lender, environment, stateAfter, verdict, serviceKeyId, ...rest } =
    event;
  return { ...snakeCased(rest), key_id: serviceKeyId, outcome_on_arrival: verdict };
}

const waitingView = ({ lenderEventId, status, occurredAt, receivedAt, waitsUntil }: LenderEvent) =>
  snakeCased({ lenderEventId, status, occurredAt, receivedAt, waitsUntil });

const waitingText = ({ status, receivedAt, waitsUntil }: LenderEvent) =>
  `${status} since ${receivedAt.toISOString()} until ${waitsUntil?.toISOString()}`;

function storyAnswer(
  { application, events, notifications }: ApplicationHistory,
  operatorEvents: Awaited<ReturnType<typeof operatorEventsOf>>,
): Answer {
  const fromLender = listed(events, eventView, {
    received: 'received_at',
    status: 'status',
    "lender's event": 'lender_event_id',
    'on arrival': 'outcome_on_arrival',
    'waits until': 'waits_until',
    sequence: 'sequence',
    applied: 'applied_at',
    occurred: 'occurred_at',
  });
  const toPartner = listed(notifications, snakeCased, {
    sequence: 'sequence',
    event: 'event_type',
    state: ({ state, endReason }) => (endReason === null ? state : `${state}: ${endReason}`),
    notification: 'notification_id',
    delivered: 'delivered_at',
    made: 'created_at',
  });
  const noticed = operatorEvents.map(
    ({ happenedAt, kind, details }) =>
      `\n  ${utcText(happenedAt)} ${kind}: ${printable(describeOperatorEvent(kind, details))}`,
  );
  return {
    json: {
      ...view(application),
      lender_events: fromLender.json,
      notifications: toPartner.json,
      operator_events: operatorEvents.map(snakeCased),
    },
    text: (most) =>
      [
        facts(view(application)),
        `What the lender reported, in the order of arrival:\n${fromLender.text(most)}`,
        `What the partner is sent:\n${toPartner.text(most)}`,
        ...(noticed.length > 0 ? [`What the service noticed:${noticed.join('')}`] : []),
      ].join('\n\n'),
  };
}
