import type { Command } from 'commander';
import { whatTheyDo, findNotification, listAttempts, listNotifications } from '../db/notifications/operator';
import { Refused } from '../db/refused';
import { NOTIFICATION_STATES, type NotificationState } from '../domain/notification-states';
import { environmentOption, sinceOption, wordsOf, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { addNotificationOrders } from './notification-orders';
import { nowBrief } from './delivery-now-text';
import { listedView, notificationAnswer, storyOf } from './notification-view';
import { age, listed, withTables } from './output';
import { inPages, paged, type Page } from './paging';
import { addRecoveryCommands } from './recoveries';

const EXAMPLES = `
Examples:
  ops notifications list --undelivered --since 2d
  ops notifications list --paused          by whom, and since when
  ops notifications list --merchant-reference ORDER-1042
  ops notifications show ntf_01K…          what it does now, and every attempt, with what was answered
  ops notifications retry-now ntf_01K…     wait no longer for the next attempt
  ops notifications resend ntf_01K…        once more, with the same event id
  ops notifications recover --partner P100001 --since 36h     all that was never delivered; counts first`;

/** Notifications are read back to front through their ids, so the span bounds the work. */
const LONGEST_SPAN_DAYS = 400;
const DEFAULT_SPAN_SECONDS = 7 * 86_400;

interface ListOptions extends Page {
  readonly state?: readonly NotificationState[];
  readonly undelivered?: true;
  readonly paused?: true;
  readonly application?: string;
  readonly merchantReference?: string;
  readonly since?: number;
}

/** `ops notifications …` */
export function addNotificationCommands(program: Command, deps: OpsDeps): void {
  const notifications = program
    .command('notifications')
    .description('What partners are notified of, and how it was delivered.')
    .addHelpText('after', EXAMPLES);

  const list = notifications
    .command('list')
    .description('Recent notifications, newest first.')
    .option('--partner <partner>', 'to this partner only', idOf('partner'))
    .addOption(environmentOption('to this environment only'))
    .option(
      '--state <states>',
      `in these states only: ${NOTIFICATION_STATES.join(', ')}`,
      wordsOf(NOTIFICATION_STATES),
    )
    .option('--undelivered', 'only what was never delivered, and not cancelled')
    .option('--paused', 'only what somebody has paused')
    .option('--application <application-id>', 'of this credit application only', idOf('application'))
    .option('--merchant-reference <reference>', "with this reference of the partner's only")
    .option(
      ...sinceOption(
        LONGEST_SPAN_DAYS,
        `7d; with --paused, --application or --merchant-reference ${LONGEST_SPAN_DAYS}d`,
      ),
    );
  handle<ListOptions>(inPages(list, 'notification'), deps, async (call) => {
    const { paused = false, application: applicationId, merchantReference, since, ...given } = call.options;
    const few = paused || applicationId !== undefined || merchantReference !== undefined;
    const byDefault = few ? LONGEST_SPAN_DAYS * 86_400 : DEFAULT_SPAN_SECONDS;
    const found = await listNotifications(call.db, {
      partnerId: given.partner,
      environment: given.environment,
      states: given.state,
      undelivered: given.undelivered === true,
      paused,
      applicationId,
      merchantReference,
      sinceSeconds: since ?? byDefault,
      after: given.after,
      limit: given.limit,
    });
    const story = storyOf(deps.storyUrl);
    const now = await whatTheyDo(call.db, found);
    const answer = listed(found, (one) => listedView(one, now(one), story), {
      notification: 'notification_id',
      now: (one) => nowBrief(now(one), deps.now()),
      'last answer': 'last_outcome',
      tries: 'attempts',
      partner: 'partner_id',
      env: 'environment',
      event: ({ eventType }) => eventType.replace(/^credit_application\./, ''),
      age: ({ createdAt }) => age(createdAt, deps.now()),
      'merchant reference': 'merchant_reference',
      application: 'application_id',
      created: 'created_at',
      ended: 'ended_at',
    });
    const example = found.map(story).find((url) => url !== null);
    const stories = example === undefined ? '' : `\nIn Temporal, for example: ${example}`;
    const { json } = answer;
    const whole = { json, ...withTables((textOf) => textOf(answer) + stories) };
    return paged(call, whole, found, ({ notificationId }) => notificationId);
  });

  const show = notifications
    .command('show')
    .argument('<notification-id>', '', idOf('notification'))
    .description('One notification: what is sent, every attempt, and what was answered.');
  handle(show, deps, async ({ db }, notificationId = '') => {
    const found = await findNotification(db, notificationId);
    if (found === null) {
      throw new Refused(
        'not_found',
        `Notification ${notificationId} does not exist, or its month has been dropped.`,
      );
    }
    const now = await whatTheyDo(db, [found]);
    const attempts = await listAttempts(db, notificationId);
    return notificationAnswer(found, now(found), attempts, storyOf(deps.storyUrl));
  });

  addNotificationOrders(notifications, deps);
  addRecoveryCommands(notifications, deps);
}
