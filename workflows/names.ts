// Names that others know workflows by: task queues, ids and signals.

/** The sends have a queue of their own, so that slow partners hold up nothing else. */
export const sendsQueueOf = (taskQueue: string) => `${taskQueue}-sends`;

/** Unique per notification and generation; starting the same again is refused by Temporal, and that is harmless. */
export const deliveryWorkflowId = (notificationId: string, generation: number) =>
  `notification/${notificationId}/${generation}`;

/**
 * Address of a delivery in Temporal's web page.
 * @param page address of that page.
 */
export function deliveryStoryUrl(
  page: string,
  namespace: string,
  { notificationId, generation }: { readonly notificationId: string; readonly generation: number },
): string {
  const workflow = encodeURIComponent(deliveryWorkflowId(notificationId, generation));
  return `${page.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(namespace)}/workflows/${workflow}`;
}

/** Signals of `deliverNotification`. */
export const DELIVERY_SIGNALS = { retryNow: 'retryNow', pause: 'pause', resume: 'resume' } as const;
