import type { NotificationRef } from '../db/notifications/notification';
import type { ActivityDeps } from './deps';
import { createAttempt } from './make-attempt';
import { createRecordResult } from './record-result';
import type { SendOrder, SendResult } from './send-order';

/** Nothing was done: the attempt belongs on the queue of the sends. */
interface Declined {
  readonly kind: 'declined';
}

/** `recorded`: a delivery has been written down, too. What else was sent is left to `recordResult`. */
type SentAtOnce = SendResult & { readonly recorded: boolean };

/**
 * Makes the first attempt within the workflow task, where that is safe and quick: this process reserved a slot for it, for an
 * endpoint that answers fast. Everything else is declined and left to `sendAttempt`; after a crash nobody has a
 * reservation. A delivery is recorded here as well, which spares the workflow a round; a record that fails never sends
 * again, because it is no failure of this activity.
 */
export function createSendAtOnce(deps: ActivityDeps) {
  const { fastPath, sendSlots, warn } = deps;
  const recordResult = createRecordResult(deps);
  const attempt = createAttempt(deps);

  async function record(
    { notificationId, generation }: NotificationRef,
    { attemptNumber, outcome, address }: Extract<SendResult, { kind: 'sent' }>,
  ): Promise<boolean> {
    const result = { notificationId, attemptNumber, outcome, address, end: null, retryInMs: null };
    try {
      await recordResult(result);
      return true;
    } catch (error) {
      warn({ notificationId, generation, err: error }, 'a delivery is not recorded yet; it will be');
      return false;
    }
  }

  return async function sendAtOnce({ queue, ...ref }: SendOrder): Promise<SentAtOnce | Declined> {
    const slot = fastPath.enter(ref.notificationId);
    if (slot === null) return { kind: 'declined' };
    try {
      const sent = await sendSlots.within(queue, () => attempt(ref, slot.endpointId));
      if (sent.kind === 'other_endpoint') return { kind: 'declined' };
      const delivered = sent.kind === 'sent' && sent.outcome.kind === 'delivered';
      return { ...sent, recorded: delivered && (await record(ref, sent)) };
    } finally {
      slot.leave();
    }
  };
}
