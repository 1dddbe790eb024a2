import type { Command } from 'commander';
import { cancelNotification } from '../db/notifications/attempt';
import { RECOVERED_PER_SECOND } from '../db/notifications/recovery';
import { Refused } from '../db/refused';
import { resendNotification } from '../db/notifications/resend';
import { environmentOption, HIGHEST_PER_SECOND, wholeNumber, idOf, idsOf } from './arguments';
import { handle, type Call, type DeliveryOrder, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import type { Answer } from './output';
import { deliveryUnderWay, giveOrder, noWorkflow, type Delivery } from './give-order';
import { orderAll, orderNamed, type ManyOrder } from './order-many';

const TOLD: Readonly<Record<DeliveryOrder, string>> = {
  retryNow: 'makes its next attempt now; one that is under way is finished first',
  pause: 'makes no attempt until it is resumed; one that is under way is finished first',
  resume: 'goes on where it was paused',
  cancel: 'makes no further attempt; one that is under way is finished first',
};

/** What an operator can have done with a notification: `retry-now`, `pause`, `resume`, `cancel`, `resend`. */
export function addNotificationOrders(notifications: Command, deps: OpsDeps): void {
  const verb = (name: string, description: string) =>
    notifications
      .command(name)
      .argument('<notification-id>', '', idOf('notification'))
      .description(description);

  addOrder('retry-now', 'retryNow', 'Wait no longer for the next attempt; also of one that is paused.');
  addOrder('pause', 'pause', 'Make no attempt until it is resumed.');
  addOrder('resume', 'resume', 'Let a paused one go on; the rest of its retry ladder stands.');

  function addOrder(name: string, order: ManyOrder['order'], description: string): void {
    const command = notifications
      .command(name)
      .argument('[notification-ids...]', '', idsOf('notification'))
      .description(
        `${description} For one, several, or all of a partner or endpoint; those are counted first.`,
      )
      .option('--partner <partner>', 'all deliveries of this partner', idOf('partner'))
      .addOption(environmentOption('with --partner: in this environment only'))
      .option('--endpoint <endpoint-id>', 'all deliveries to this endpoint', idOf('endpoint'))
      .option('--dry-run', 'only count, which is what it does without --yes too')
      .option('--yes', 'give the order to all of them')
      .option(
        '--per-second <n>',
        `most per second, 1 to ${HIGHEST_PER_SECOND}; default: ${RECOVERED_PER_SECOND}`,
        wholeNumber(1, HIGHEST_PER_SECOND),
      );
    handle<{ endpoint?: string }>(command, deps, async (call, ...operands) => {
      const [ids = []] = operands as unknown as [string[] | undefined];
      const [first, ...more] = ids;
      if (first === undefined) return orderAll(call, { name, order });
      const { partner, endpoint, environment, dryRun } = call.options;
      if ([partner, endpoint, environment, dryRun].some((option) => option !== undefined))
        throw new Refused('invalid', 'Options that choose or count are for orders without ids.');
      if (more.length > 0) return orderNamed(call, { name, order }, ids);
      const delivery = await deliveryUnderWay(call.db, first);
      return (await giveOrder(call, delivery, name, order)) ? answerOf(delivery, order) : noWorkflow(first);
    });
  }

  const cancel = verb('cancel', 'Make no further attempt, for good; resend takes it up again.');
  handle(cancel, deps, async (call, notificationId = '') => {
    const found = await cancelInDatabase(call, notificationId, null);
    if (found.kind === 'cancelled') return cancelledAnswer(notificationId);
    const { generation, partnerId } = found;
    const delivery = { notificationId, generation, partnerId };
    if (await giveOrder(call, delivery, 'cancel', 'cancel')) return answerOf(delivery, 'cancel');
    // No workflow will end it, so we do, unless it has become another generation meanwhile.
    const again = await cancelInDatabase(call, notificationId, generation);
    if (again.kind === 'cancelled') return cancelledAnswer(notificationId);
    throw new Refused('conflict', `Notification ${notificationId} was just started anew: cancel it again.`);
  });

  const resend = verb('resend', 'Send one that has ended or is held once more, with the same event id.');
  handle(resend, deps, async (call, notificationId = '') => {
    const { was, generation } = await changeAndLog(call, 'notifications.resend', async (tx, log) => {
      const done = await resendNotification(tx, notificationId);
      const details = { partner_id: done.was.partnerId, generation: done.generation, was: done.was.state };
      await log(notificationId, details);
      return done;
    });
    const { eventId, state } = was;
    return {
      json: { notification_id: notificationId, event_id: eventId, generation, was: state, state: 'queued' },
      text: `Notification ${notificationId} was ${state} and is sent again, as event ${eventId}.`,
    };
  });

  function cancelInDatabase(call: Call, notificationId: string, deadGeneration: number | null) {
    return changeAndLog(call, 'notifications.cancel', async (tx, log) => {
      const done = await cancelNotification(tx, notificationId, deadGeneration);
      if (done.kind === 'cancelled') await log(notificationId, { partner_id: done.partnerId, was: done.was });
      return done;
    });
  }
}

const answerOf = ({ notificationId, generation }: Delivery, order: DeliveryOrder): Answer => ({
  json: { notification_id: notificationId, generation, order },
  text: `Notification ${notificationId} ${TOLD[order]}.`,
});

const cancelledAnswer = (notificationId: string): Answer => ({
  json: { notification_id: notificationId, state: 'cancelled' },
  text: `Notification ${notificationId} is cancelled.`,
});
