import type { Command } from 'commander';
import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import type { DbOrTransaction } from '../db/postgres/connect';
import { cancelNotification } from '../db/notifications/cancel';
import { whatTheyDo } from '../db/notifications/delivery-facts';
import { findNotification, lockNotification } from '../db/notifications/read';
import { applyEvent } from '../db/notifications/transition';
import { Refused } from '../db/refused';
import { resendNotification } from '../db/notifications/resend';
import { handle, type Answer, type Call, type DeliveryOrder, type DeliveryRef, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { nowText } from './delivery-now-text';
import { TemporalUnreachable } from './exit-codes';

const TOLD: Readonly<Record<DeliveryOrder, string>> = {
  retryNow: 'makes its next attempt now; one that is under way is finished first',
  pause: 'makes no attempt until it is resumed; one that is under way is finished first',
  resume: 'goes on where it was paused',
  cancel: 'makes no further attempt; one that is under way is finished first',
};

/** What an operator can have done with a notification: `retry-now`, `pause`, `resume`, `cancel`, `resend`. */
export function addNotificationOrders(notifications: Command, deps: OpsDeps): void {
  const verb = (name: string, description: string) =>
    notifications.command(name).argument('<notification-id>').description(description);

  addOrder('retry-now', 'retryNow', 'Wait no longer for the next attempt; also of one that is paused.');
  addOrder('pause', 'pause', 'Make no attempt until it is resumed.');
  addOrder('resume', 'resume', 'Let a paused one go on; the rest of its retry ladder stands.');

  function addOrder(name: string, order: DeliveryOrder, description: string): void {
    handle(verb(name, description), deps, async (call, notificationId = '') => {
      const generation = await generationUnderWay(call.db, notificationId);
      const answer = await tell(call, { notificationId, generation }, name, order);
      if (answer !== null) return answer;
      const why = 'it has just ended, or is started anew within a minute or so';
      throw new Refused('conflict', `Notification ${notificationId} has no workflow at the moment: ${why}.`);
    });
  }

  const cancel = verb('cancel', 'Make no further attempt, for good; resend takes it up again.');
  handle(cancel, deps, async (call, notificationId = '') => {
    const found = await cancelInDatabase(call, notificationId, null);
    if (found.kind === 'cancelled') return cancelledAnswer(notificationId);
    const { generation } = found;
    const answer = await tell(call, { notificationId, generation }, 'cancel', 'cancel');
    if (answer !== null) return answer;
    // No workflow will end it, so we do, unless it has become another generation meanwhile.
    const again = await cancelInDatabase(call, notificationId, generation);
    if (again.kind === 'cancelled') return cancelledAnswer(notificationId);
    throw new Refused('conflict', `Notification ${notificationId} was just started anew: cancel it again.`);
  });

  const resend = verb('resend', 'Send one that has ended or is held once more, with the same event id.');
  handle(resend, deps, async (call, notificationId = '') => {
    const { was, generation } = await changeAndLog(call, 'notifications.resend', async (tx, log) => {
      const done = await resendNotification(tx, notificationId, { testEventType: TEST_EVENT_TYPE });
      const details = { partner_id: done.was.partnerId, generation: done.generation, was: done.was.state };
      await log(notificationId, details);
      return done;
    });
    const { eventId, state } = was;
    return {
      json: { notification_id: notificationId, event_id: eventId, generation, was: state, state: 'pending' },
      text: `Notification ${notificationId} was ${state} and is sent again, as event ${eventId}.`,
    };
  });

  /** @returns null when Temporal knows no such workflow. The log has the order only when Temporal took it. */
  async function tell(
    call: Call,
    delivery: DeliveryRef,
    name: string,
    order: DeliveryOrder,
  ): Promise<Answer | null> {
    const { notificationId, generation } = delivery;
    const taken = await changeAndLog(call, `notifications.${name}`, async (tx, log) => {
      const answer = await deps.orderDelivery(delivery, order);
      if (answer.kind === 'unreachable') throw new TemporalUnreachable(answer);
      if (answer.kind === 'no_workflow') return false;
      await log(notificationId, { generation });
      if (order === 'pause' || order === 'resume') await notePause(tx, delivery, order);
      return true;
    });
    if (!taken) return null;
    return {
      json: { notification_id: notificationId, generation, order },
      text: `Notification ${notificationId} ${TOLD[order]}.`,
    };
  }

  function cancelInDatabase(call: Call, notificationId: string, deadGeneration: number | null) {
    return changeAndLog(call, 'notifications.cancel', async (tx, log) => {
      const done = await cancelNotification(tx, notificationId, deadGeneration);
      if (done.kind === 'cancelled') await log(notificationId, { was: done.was });
      return done;
    });
  }
}

/** Partners see no next attempt while one is paused; Temporal does the pausing. */
async function notePause(
  tx: DbOrTransaction,
  { notificationId, generation }: DeliveryRef,
  order: 'pause' | 'resume',
): Promise<void> {
  const row = await lockNotification(tx, notificationId);
  if (row?.generation === generation) await applyEvent(tx, row, order, {});
}

const cancelledAnswer = (notificationId: string): Answer => ({
  json: { notification_id: notificationId, state: 'cancelled' },
  text: `Notification ${notificationId} is cancelled.`,
});

/** @throws Refused for one that no workflow works on, saying what to do instead. */
async function generationUnderWay(db: DbOrTransaction, notificationId: string): Promise<number> {
  const found = await findNotification(db, notificationId);
  if (found === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  const { state, generation } = found;
  switch (state) {
    case 'started':
      return generation;
    case 'pending': {
      const now = await whatTheyDo(db, [found]);
      throw new Refused('conflict', `Notification ${notificationId} is pending: ${nowText(now(found))}.`);
    }
    case 'held':
      throw new Refused(
        'conflict',
        `Notification ${notificationId} is held: register or enable an endpoint, then resend it.`,
      );
    case 'delivered':
    case 'failed':
    case 'cancelled':
    case 'expired':
      throw new Refused(
        'conflict',
        `Notification ${notificationId} has ended (${state}): resend it instead.`,
      );
  }
}
