export const TASK_QUEUE = 'notifications';

/** Temporal worker deployment that builds of the worker belong to. */
export const WORKER_DEPLOYMENT = 'partner-finance-quote-service';

/** The sends have a task queue of their own, so that slow partners do not delay records. */
export const sendsQueueOf = (taskQueue: string) => `${taskQueue}-sends`;

/** Unique per notification and generation: Temporal refuses a second start. */
export const deliveryWorkflowId = (notificationId: string, generation: number) =>
  `notification/${notificationId}/${generation}`;

/** Address of a delivery in Temporal's web page. @param page address of that page. */
export function deliveryStoryUrl(
  page: string,
  namespace: string,
  { notificationId, generation }: { readonly notificationId: string; readonly generation: number },
): string {
  const workflow = encodeURIComponent(deliveryWorkflowId(notificationId, generation));
  return `${page.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(namespace)}/workflows/${workflow}`;
}

/** Tells a delivery that an operator has changed its row. */
export const WAKE_SIGNAL = 'wake';
