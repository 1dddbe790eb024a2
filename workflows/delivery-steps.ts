import { proxyActivities, proxyLocalActivities, workflowInfo } from '@temporalio/workflow';
import type { LocalActivities, RecordActivities, SendActivities } from '../activities';
import type { SendOrder, SendResult } from '../activities/send-order';
import { sendsQueueOf } from './names';

/**
 * The activities of a delivery. On the fast path the first attempt runs within the workflow task, once, and is recorded there
 * when it delivers; whatever goes wrong with that is left to the regular ones, which Temporal repeats without holding a slot.
 */
export function createSteps(of: Omit<SendOrder, 'told'>) {
  const { sendAttempt } = proxyActivities<SendActivities>({
    taskQueue: sendsQueueOf(workflowInfo().taskQueue),
    // The whole exchange ends after 20 s; the heartbeat tells sooner that a worker has died.
    startToCloseTimeout: '40 seconds',
    heartbeatTimeout: '10 seconds',
    retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
  });
  const { recordResult, endDelivery } = proxyActivities<RecordActivities>({
    startToCloseTimeout: '15 seconds',
    retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
  });
  const { sendAtOnce } = proxyLocalActivities<LocalActivities>({
    startToCloseTimeout: '40 seconds',
    retry: { maximumAttempts: 1 },
  });

  return {
    recordResult,
    endDelivery,
    /**
     * Makes the nth attempt of the ladder, from 1.
     * @param fast within the workflow task, if that can be.
     * @param told whether the workflow knows what is planned.
     * @returns what was sent, and whether it is recorded already.
     */
    async send(
      nth: number,
      fast: boolean,
      told: boolean,
    ): Promise<SendResult & { readonly recorded: boolean }> {
      const order = { ...of, told };
      const summary = `attempt ${nth}: sign and POST`;
      const sent = fast ? await unlessItFails(sendAtOnce.executeWithOptions({ summary }, [order])) : null;
      if (sent !== null && sent.kind !== 'declined') return sent;
      return { ...(await sendAttempt.executeWithOptions({ summary }, [order])), recorded: false };
    },
  };
}

/** @returns null for a failure. */
async function unlessItFails<T>(task: Promise<T>): Promise<T | null> {
  try {
    return await task;
  } catch {
    return null;
  }
}
