import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { NOT_REGISTERED } from '../db/notifications/hold';
import type { NotificationState } from '../db/notifications/read';
import { openAttempt } from '../db/notifications/open-attempt';
import type { ActivityDeps } from './deps';
import type { Busy } from './lanes';
import { createMakeAttempt, createRefuse } from './make-attempt';

/** Which notification, and in whose name: a workflow of an older generation is told that it is over. */
export interface NotificationRef {
  readonly notificationId: string;
  readonly generation: number;
}

/** What `sendAttempt` is asked to send. */
export interface SendOrder extends NotificationRef {
  /** Names the endpoint, for the limit on what is under way to it. */
  readonly lane: string;
}

/** What became of one step of the ladder. Ids and outcomes only: it is stored in the workflow's history. */
export type SendResult =
  | {
      readonly kind: 'sent';
      readonly attemptNumber: number;
      readonly outcome: DeliveryOutcome;
      readonly address: string | null;
    }
  | Busy
  /** No attempt was made, and none will be: the notification has ended, now or before, or is held. */
  | { readonly kind: 'over'; readonly state: NotificationState; readonly reason: string | null }
  /** A later generation has taken over. */
  | { readonly kind: 'superseded' };

/**
 * Makes one attempt: opens its row, signs and sends. It returns for whatever the partner does, and throws only for our
 * own faults, so that Temporal repeats it; a repetition closes the row as `unknown` and sends the same event again.
 */
export function createSendAttempt(deps: ActivityDeps) {
  const { db, lanes } = deps;
  const makeAttempt = createMakeAttempt(deps);
  const refuse = createRefuse(deps);

  return async function sendAttempt({ lane, ...ref }: SendOrder): Promise<SendResult> {
    return lanes.within(lane, () => attempt(ref));
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
        return refuse(ref, { state, reason: NOT_REGISTERED });
      }
    }
  }
}
