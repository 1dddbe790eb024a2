import type { ActivityDeps } from './deps';
import { createAttempt } from './make-attempt';
import type { SendOrder, SendResult } from './send-order';

/**
 * Makes one attempt: opens its row, signs and sends. It returns for whatever the partner does, and throws only for our
 * own faults, so that Temporal repeats it; a repetition closes the row as `unknown` and sends the same event again.
 */
export function createSendAttempt(deps: ActivityDeps) {
  const attempt = createAttempt(deps);

  return async function sendAttempt({ queue, ...ref }: SendOrder): Promise<SendResult> {
    const sent = await deps.sendSlots.within(queue, () => attempt(ref, null));
    if (sent.kind === 'other_endpoint') throw new Error('no endpoint was asked for');
    return sent;
  };
}
