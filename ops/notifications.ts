import type { Command } from 'commander';
import {
  countWhatTheyDo,
  findNotification,
  listAttempts,
  listNotifications,
  LONGEST_SPAN_DAYS,
  whatTheyDo,
  type DoingCount,
} from '../db/notifications/operator';
import { listPauses } from '../db/notifications/hold';
import type { KeyEnvironment } from '../db/keys';
import type { Db } from '../db/postgres/connect';
import { NOTIFICATION_STATES, type NotificationState } from '../domain/notification-states';
import { duration, environmentOption, inPages, paged, spanOf, withSpan, wordsOption } from './arguments';
import type { Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { addNotificationOrders } from './notification-orders';
import { idOf, withId } from './ids';
import { listedView, notificationAnswer, nowTexts, storyOf } from './notification-view';
import { age, existing, listed, pauseText, snakeCased } from './output';
import { addReportCommand, reasonsOf, withReasons } from './report';
import { addRecoveryCommands } from './recoveries';

const EXAMPLES = `
  ops notifications summary --partner P100001     what its deliveries do now, and what was answered last
  ops notifications list --undelivered --since 2d
  ops notifications list --paused          by whom, and since when
  ops notifications list --merchant-reference ORDER-1042
  ops notifications report --partner P100001 --since 1d --late 1m     what to tell the partner
  ops notifications show ntf_01K…          what it does now, and every attempt, with what was answered
  ops notifications retry-now ntf_01K…     wait no longer for the next attempt
  ops notifications resend ntf_01K…        once more, with the same event id
  ops notifications recover --partner P100001 --since 36h     all that was never delivered; counts first`;

const DEFAULT_SPAN_DAYS = 7;

interface ListOptions extends Page {
  readonly state?: readonly NotificationState[];
  readonly undelivered?: true;
  readonly paused?: true;
  readonly late?: number;
  readonly application?: string;
}

type DeliveryPauses = Awaited<ReturnType<typeof listPauses>>;

/** Partners whose deliveries are paused as a whole. */
async function pausesOf(
  db: Db,
  { partnerId, environment }: { readonly partnerId?: string; readonly environment?: KeyEnvironment },
): Promise<DeliveryPauses> {
  const pauses = await listPauses(db, partnerId ?? null);
  return pauses.filter((one) => environment === undefined || one.environment === environment);
}

const pausesText = (pauses: DeliveryPauses) =>
  pauses.map((one) => `Paused: ${one.partnerId} in ${pauseText(one)}.\n`).join('');

export function addNotificationCommands(program: Command, deps: OpsDeps): void {
  const notifications = group(
    program,
    'notifications',
    'What partners are notified of, and how it was delivered.',
    EXAMPLES,
  );

  const list = notifications
    .command('list')
    .description('Recent notifications, newest first.')
    .option('--partner <partner>', 'to this partner only', idOf('partner'))
    .addOption(environmentOption('to this environment only'))
    .addOption(wordsOption('--state <states>', 'in these states only', NOTIFICATION_STATES))
    .option('--undelivered', 'only what was never delivered, and not cancelled')
    .option('--paused', 'only what somebody has paused')
    .option('--late <duration>', 'only what was delivered so late, or is so late by now: 1m', duration)
    .option('--application <application-id>', 'of this credit application only', idOf('application'))
    .option('--merchant-reference <reference>', "with this reference of the partner's only");
  const limits = `at most ${LONGEST_SPAN_DAYS}d; default: ${DEFAULT_SPAN_DAYS}d, with --paused, --application or --merchant-reference all`;
  withSpan(list, 'created from then on', limits);
  handle<ListOptions>(inPages(list, 'notification'), deps, async (call) => {
    const { paused = false, application: applicationId, merchantReference, ...given } = call.options;
    const few = paused || applicationId !== undefined || merchantReference !== undefined;
    const found = await listNotifications(call.db, {
      ...(await spanOf(call, LONGEST_SPAN_DAYS, few ? LONGEST_SPAN_DAYS : DEFAULT_SPAN_DAYS)),
      partnerId: given.partner,
      environment: given.environment,
      states: given.state,
      undelivered: given.undelivered === true,
      paused,
      lateSeconds: given.late,
      applicationId,
      merchantReference,
      after: given.after,
      limit: given.limit,
    });
    const now = await whatTheyDo(call.db, found);
    const at = await deps.now(call.db);
    const answer = listed(found, (one) => listedView(one, now(one), storyOf(one, deps)), {
      notification: 'notification_id',
      now: (one) => nowTexts(now(one), at)[0],
      'last answer': 'last_outcome',
      tries: 'attempts',
      partner: 'partner_id',
      env: 'environment',
      event: ({ eventType }) => eventType.replace(/^credit_application\./, ''),
      age: ({ createdAt }) => age(createdAt, at),
      'merchant reference': 'merchant_reference',
      application: 'application_id',
      created: 'created_at',
      ended: 'ended_at',
    });
    const example = answer.json.find(({ story }) => story !== null)?.story;
    const stories = example === undefined ? '' : `\nIn Temporal, for example: ${example}`;
    // While a partner is paused, its deliveries are not paused one by one.
    const { partner: partnerId, environment } = given;
    const pauses = paused ? pausesText(await pausesOf(call.db, { partnerId, environment })) : '';
    const whole = { json: answer.json, text: (most: number) => pauses + answer.text(most) + stories };
    return paged(call, whole, found.at(-1)?.notificationId);
  });

  const show = withId(notifications.command('show'), 'notification', '<notification-id>').description(
    'One notification: what is sent, every attempt, and what was answered.',
  );
  handle(show, deps, async ({ db }, notificationId = '') => {
    const found = existing(await findNotification(db, notificationId), `Notification ${notificationId}`);
    const now = await whatTheyDo(db, [found]);
    const attempts = await listAttempts(db, notificationId);
    const answer = notificationAnswer(found, now(found), attempts, deps, await deps.now(db));
    return withReasons(answer, await reasonsOf(db, found));
  });

  const summary = notifications
    .command('summary')
    .description(
      'What deliveries do now, attempts under way included: how many, the oldest, and what was answered last.',
    )
    .option('--partner <partner>', 'of this partner only, by environment', idOf('partner'))
    .addOption(environmentOption('of this environment only'));
  handle(summary, deps, async ({ db, options }) => {
    const { partner: partnerId, environment } = options;
    const found = await countWhatTheyDo(db, { partnerId, environment });
    const pauses = await pausesOf(db, { partnerId, environment });
    const at = await deps.now(db);
    const answer = listed(found, summaryView, {
      ...(partnerId === undefined
        ? { partners: ({ partners }) => (partners.size === 1 ? [...partners].join() : partners.size) }
        : { env: 'environment' }),
      doing: ({ doing, reason }) => (reason === null ? doing : `${doing}: ${reason}`),
      count: 'count',
      oldest: ({ oldest }) => age(oldest.createdAt, at),
      'last answers': (one) =>
        summaryView(one)
          .last_answers.map(({ answer: text, count }) => `${text} (${count})`)
          .join(', '),
      'oldest one': ({ oldest }) => oldest.notificationId,
    });
    return {
      json: { paused: pauses.map(snakeCased), doing: answer.json },
      text: (most) => pausesText(pauses) + answer.text(most),
    };
  });

  addReportCommand(notifications, deps);
  addNotificationOrders(notifications, deps);
  addRecoveryCommands(notifications, deps);
}

const ANSWERS_SHOWN = 3;

const summaryView = ({ environment, doing, reason, count, partners, oldest, answers }: DoingCount) => ({
  environment: environment ?? null,
  doing,
  reason,
  count,
  partners: partners.size,
  oldest_notification_id: oldest.notificationId,
  oldest_created_at: oldest.createdAt,
  last_answers: [...answers]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, ANSWERS_SHOWN)
    .map(([answer, times]) => ({ answer, count: times })),
});
