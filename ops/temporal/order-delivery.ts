import { Client, WorkflowNotFoundError } from '@temporalio/client';
import type { DeliveryOrder, DeliveryRef, OrderAnswer } from '../call';
import { deliveryWorkflowId, DELIVERY_SIGNALS } from '../../workflows/names';
import { overOwnConnection } from '../../runtime/temporal/connect';
import type { TemporalTarget } from '../../runtime/temporal/temporal-target';

/** A person waits: Temporal answers in milliseconds, or is not there. */
const DEADLINE_MS = 1_500;

/**
 * Gives an order to the workflow of a delivery.
 * @throws what is neither a missing workflow nor an unreachable Temporal, for example a namespace that does not exist.
 */
export async function orderDelivery(
  target: TemporalTarget,
  delivery: DeliveryRef,
  order: DeliveryOrder,
): Promise<OrderAnswer> {
  return overOwnConnection<OrderAnswer>(target, DEADLINE_MS, async (connection) => {
    const { workflow } = new Client({ connection, namespace: target.namespace });
    const handle = workflow.getHandle(deliveryWorkflowId(delivery.notificationId, delivery.generation));
    try {
      await connection.withDeadline(Date.now() + DEADLINE_MS, async () => {
        if (order === 'cancel') await handle.cancel();
        else await handle.signal(DELIVERY_SIGNALS[order]);
      });
      return { kind: 'taken' };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { kind: 'no_workflow' };
      throw error;
    }
  });
}
