import type { DbOrTransaction } from '../db/postgres/connect';
import { findNotification, whatTheyDo } from '../db/notifications/operator';
import { notePause } from '../db/notifications/attempt';
import { Refused } from '../db/refused';
import type { Call, DeliveryOrder, DeliveryRef } from './call';
import { changeAndLog } from './change-and-log';
import { nowText } from './delivery-now-text';
import { TemporalUnreachable } from './exit-codes';

/** A delivery that a workflow works on, and whose it is. */
export interface Delivery extends DeliveryRef {
  readonly partnerId: string;
}

/**
 * Gives an order to the workflow of a delivery. The log has it only when Temporal took it.
 * @returns false when Temporal knows no such workflow. @throws TemporalUnreachable
 */
export async function giveOrder(
  call: Call,
  { partnerId, ...delivery }: Delivery,
  name: string,
  order: DeliveryOrder,
): Promise<boolean> {
  const { notificationId, generation } = delivery;
  return changeAndLog(call, `notifications.${name}`, async (tx, log) => {
    const answer = await call.deps.orderDelivery(delivery, order);
    if (answer.kind === 'unreachable') throw new TemporalUnreachable(answer);
    if (answer.kind === 'no_workflow') return false;
    await log(notificationId, { partner_id: partnerId, generation });
    if (order === 'pause' || order === 'resume') await notePause(tx, delivery, order);
    return true;
  });
}

/** @throws Refused for one that no workflow works on, saying what to do instead. */
export async function deliveryUnderWay(db: DbOrTransaction, notificationId: string): Promise<Delivery> {
  const found = await findNotification(db, notificationId);
  if (found === null) throw new Refused('not_found', `Notification ${notificationId} does not exist.`);
  const { state, generation, partnerId } = found;
  switch (state) {
    case 'started':
      return { notificationId, generation, partnerId };
    case 'queued': {
      const now = await whatTheyDo(db, [found]);
      throw new Refused('conflict', `Notification ${notificationId} is queued: ${nowText(now(found))}.`);
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

/** @throws Refused */
export function noWorkflow(notificationId: string): never {
  const why = 'it has just ended, or is started anew within a minute or so';
  throw new Refused('conflict', `Notification ${notificationId} has no workflow at the moment: ${why}.`);
}
