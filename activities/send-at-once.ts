import { openFirstAttempt } from '../db/queries/open-first-attempt';
import type { ActivityDeps } from './deps';
import { createMakeAttempt } from './make-attempt';
import type { NotificationRef, SendOrder, SendResult } from './send-attempt';

/** Nothing was done: the attempt belongs on the queue of the sends. */
export interface Declined {
  readonly kind: 'declined';
}

/**
 * Makes the first attempt within the workflow task, where that is safe and quick: this process reserved a place for it,
 * and its row opens in one statement. Everything else is declined, and left to `sendAttempt`: after a crash nobody has a
 * reservation, so what was begun is looked at there.
 */
export function createSendAtOnce(deps: ActivityDeps) {
  const { sql, fastPath, lanes } = deps;
  const makeAttempt = createMakeAttempt(deps);
  return async function sendAtOnce({ lane, ...ref }: SendOrder): Promise<SendResult | Declined> {
    const place = lane === undefined ? null : fastPath.enter(ref.notificationId);
    if (lane === undefined || place === null) return { kind: 'declined' };
    try {
      return await lanes.within(lane, () => attempt(ref, place.endpointId));
    } finally {
      place.leave();
    }
  };

  async function attempt(ref: NotificationRef, endpointId: string): Promise<SendResult | Declined> {
    const opened = await openFirstAttempt(sql, ref, endpointId);
    return opened === null ? { kind: 'declined' } : makeAttempt(ref, opened);
  }
}
