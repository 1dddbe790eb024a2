import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import { deliveryWorkflowId, DELIVERY_SIGNALS, type DeliverySignal } from '../../workflows/names';
import { reasonOfAbsence } from './temporal-absence';
import type { TemporalTarget } from './temporal-target';

/** A person waits: Temporal answers in milliseconds, or is not there. */
const DEADLINE_MS = 1_500;

/** A signal of ours, or Temporal's own cancellation. */
export type DeliveryOrder = DeliverySignal | 'cancel';

export type DeliveryOrderAnswer =
  | { readonly kind: 'taken' }
  /** There is no such workflow, or it has ended. */
  | { readonly kind: 'no_workflow' }
  | { readonly kind: 'unreachable'; readonly address: string; readonly why: string };

/**
 * Gives an order to the workflow of a delivery over a connection of its own, which is closed again.
 * @throws what is neither a missing workflow nor an unreachable Temporal, for example a namespace that does not exist.
 */
export async function orderDelivery(
  { namespace, connection: options }: TemporalTarget,
  delivery: { readonly notificationId: string; readonly generation: number },
  order: DeliveryOrder,
): Promise<DeliveryOrderAnswer> {
  const connection = Connection.lazy({ ...options, connectTimeout: DEADLINE_MS });
  const { workflow } = new Client({ connection, namespace });
  try {
    const handle = workflow.getHandle(deliveryWorkflowId(delivery.notificationId, delivery.generation));
    await connection.withDeadline(Date.now() + DEADLINE_MS, async () => {
      if (order === 'cancel') await handle.cancel();
      else await handle.signal(DELIVERY_SIGNALS[order]);
    });
    return { kind: 'taken' };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'no_workflow' };
    const why = reasonOfAbsence(error, DEADLINE_MS);
    if (why === null) throw error;
    return { kind: 'unreachable', address: options.address, why };
  } finally {
    await connection.close();
  }
}
