import type { ActivityDeps } from './deps';
import { withHeartbeat } from './heartbeat';
import { createEndDelivery, createRecordResult } from './record-result';
import { createSendAtOnce } from './send-at-once';
import { createSendAttempt } from './send-attempt';
import type { SendOrder } from './send-order';

export type { ActivityDeps, AttemptFacts, EndedNotification, SendWebhook } from './deps';
export { createSendSlots, type SendSlots } from './send-slots';

/** Every side effect of the workflows. The sends run on a queue of their own, so that slow partners hold up no records. */
export function createActivities(deps: ActivityDeps) {
  const sendAttempt = createSendAttempt(deps);
  return {
    sends: { sendAttempt: (order: SendOrder) => withHeartbeat(() => sendAttempt(order)) },
    records: { recordResult: createRecordResult(deps), endDelivery: createEndDelivery(deps) },
    local: { sendAtOnce: createSendAtOnce(deps) },
  };
}

export type SendActivities = ReturnType<typeof createActivities>['sends'];
export type RecordActivities = ReturnType<typeof createActivities>['records'];
export type LocalActivities = ReturnType<typeof createActivities>['local'];
