import { openFirstAttempt } from '../db/notifications/open-first-attempt';
import type { ActivityDeps } from './deps';
import { createMakeAttempt } from './make-attempt';
import { createRecordResult } from './record-result';
import type { NotificationRef, SendOrder, SendResult } from './send-order';

/** Nothing was done: the attempt belongs on the queue of the sends. */
interface Declined {
  readonly kind: 'declined';
}

/** What was sent within the workflow task. */
type SentAtOnce = Extract<SendResult, { kind: 'sent' }> & {
  /** A delivery is written down at once; false: that failed, and is left to `recordResult`. What else came of it is not. */
  readonly recorded?: boolean;
};

/**
 * Makes the first attempt within the workflow task, where that is safe and quick: this process reserved a slot for it,
 * and its row opens in one statement. Everything else is declined and left to `sendAttempt`; after a crash nobody has a
 * reservation. A delivery is recorded here as well, which spares the workflow a round; a record that fails never sends
 * again, because it is no failure of this activity.
 */
export function createSendAtOnce(deps: ActivityDeps) {
  const { sql, fastPath, sendSlots, warn } = deps;
  const recordResult = createRecordResult(deps);
  const makeAttempt = createMakeAttempt(deps);
  return async function sendAtOnce(order: SendOrder): Promise<SendResult | SentAtOnce | Declined> {
    const { queue, ...ref } = order;
    const slot = fastPath.enter(ref.notificationId);
    if (slot === null) return { kind: 'declined' };
    try {
      const sent = await sendSlots.within(queue, async () => {
        const opened = await openFirstAttempt(sql, ref, slot.endpointId);
        return opened === null ? ({ kind: 'declined' } as const) : makeAttempt(ref, opened);
      });
      const delivered = sent.kind === 'sent' && sent.outcome.kind === 'delivered';
      return delivered ? { ...sent, recorded: await record(ref, sent) } : sent;
    } finally {
      slot.leave();
    }
  };

  async function record(
    ref: NotificationRef,
    { attemptNumber, outcome, address }: SentAtOnce,
  ): Promise<boolean> {
    const { notificationId } = ref;
    return recordResult({ notificationId, attemptNumber, outcome, address, end: null, retryInMs: null }).then(
      () => true,
      (error: unknown) => {
        warn({ ...ref, err: error }, 'a delivery is not recorded yet; it will be');
        return false;
      },
    );
  }
}
