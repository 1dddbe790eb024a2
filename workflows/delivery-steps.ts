import { proxyActivities, proxyLocalActivities, workflowInfo } from '@temporalio/workflow';
import type { LocalActivities, RecordActivities, SendActivities } from '../activities';
import type { AttemptResult } from '../activities/record-result';
import type { SendOrder, SendResult } from '../activities/send-order';
import { sendsQueueOf } from './names';

/**
 * The activities of a delivery. On the fast path the first attempt and its record run within the workflow task, once
 * each, and as one for a delivery; whatever goes wrong with that is left to the regular ones, which Temporal repeats without holding a slot.
 */
export function createSteps(order: SendOrder, fast: boolean) {
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
  const local = proxyLocalActivities<LocalActivities & Pick<RecordActivities, 'recordResult'>>({
    startToCloseTimeout: '40 seconds',
    retry: { maximumAttempts: 1 },
  });
  let within = fast;
  let recorded: boolean | undefined;

  return {
    endDelivery,
    /** Makes the nth attempt of this workflow, from 1. */
    async send(nth: number): Promise<SendResult> {
      const summary = `attempt ${nth}: sign and POST`;
      if (within) {
        const sent = await unlessItFails(local.sendAtOnce.executeWithOptions({ summary }, [order]));
        within = sent?.kind === 'sent';
        if (sent?.kind === 'sent' && 'recorded' in sent) recorded = sent.recorded;
        if (sent !== null && sent.kind !== 'declined') return sent;
      }
      return sendAttempt.executeWithOptions({ summary }, [order]);
    },
    /** Writes down what it came to, unless that has been done with the send. */
    async record(result: AttemptResult, summary: string): Promise<void> {
      if (within) {
        within = false;
        if (recorded === true) return;
        if (recorded === undefined) {
          const record = local.recordResult.executeWithOptions({ summary }, [result]);
          if ((await unlessItFails(record.then(() => true))) !== null) return;
        }
      }
      await recordResult.executeWithOptions({ summary }, [result]);
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
