import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import { openAttempt } from '../db/notifications/open-attempt';
import type { ActivityDeps } from './deps';
import { createMakeAttempt, createRefuse } from './make-attempt';
import type { NotificationRef, SendOrder, SendResult } from './send-order';

/**
 * Makes one attempt: opens its row, signs and sends. It returns for whatever the partner does, and throws only for our
 * own faults, so that Temporal repeats it; a repetition closes the row as `unknown` and sends the same event again.
 */
export function createSendAttempt(deps: ActivityDeps) {
  const { db, sendSlots } = deps;
  const makeAttempt = createMakeAttempt(deps);
  const refuse = createRefuse(deps);

  return async function sendAttempt({ queue, ...ref }: SendOrder): Promise<SendResult> {
    return sendSlots.within(queue, () => attempt(ref));
  };

  async function attempt(ref: NotificationRef): Promise<SendResult> {
    const opened = await openAttempt(db, ref);
    switch (opened.kind) {
      case 'open':
        return makeAttempt(ref, opened);
      case 'over':
      case 'superseded':
        return opened;
      case 'monthly_limit':
        return refuse(ref, { state: 'failed', reason: 'monthly_limit' });
      case 'no_endpoint': {
        // A test exists to be heard of at once; what tells of an application waits for an endpoint.
        const state = opened.eventType === TEST_EVENT_TYPE ? 'failed' : 'held';
        return refuse(ref, { state, reason: opened.reason });
      }
    }
  }
}
