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
    sends: { sendAttempt: withCode((order: SendOrder) => withHeartbeat(() => sendAttempt(order))) },
    records: {
      recordResult: withCode(createRecordResult(deps)),
      endDelivery: withCode(createEndDelivery(deps)),
    },
    local: { sendAtOnce: withCode(createSendAtOnce(deps)) },
  };
}

/**
 * Of an error that an activity throws the SDK keeps its class; of its cause a history also has the code and the table
 * (workflows/failure-converter.ts). So an error with a code becomes the cause of one without.
 */
function withCode<Input, Output>(activity: (input: Input) => Promise<Output>) {
  return async (input: Input): Promise<Output> => {
    try {
      return await activity(input);
    } catch (error) {
      const coded = error instanceof Error && 'code' in error;
      throw coded ? new Error('an activity failed', { cause: error }) : error;
    }
  };
}

export type SendActivities = ReturnType<typeof createActivities>['sends'];
export type RecordActivities = ReturnType<typeof createActivities>['records'];
export type LocalActivities = ReturnType<typeof createActivities>['local'];
