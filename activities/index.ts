import { Context } from '@temporalio/activity';
import { createSendAtOnce, createSendAttempt, type AttemptDeps } from './attempt';
import { createEndDelivery, createRecordResult } from './record';
import { createRetentionActivities, type RetentionDeps } from './remove-expired';

export type { AttemptFacts, SendWebhook } from './attempt';
export type { EndedNotification } from './record';
export { createSendSlots, type SendSlots } from './send-slots';

/** Every side effect of the workflows. The sends have a task queue of their own, so that slow partners do not delay records. */
export function createActivities(deps: AttemptDeps & RetentionDeps) {
  const { removeExpired, reportRemoval } = createRetentionActivities(deps);
  return {
    sends: { sendAttempt: withCode(withHeartbeat(createSendAttempt(deps))) },
    records: {
      recordResult: withCode(createRecordResult(deps)),
      endDelivery: withCode(createEndDelivery(deps)),
      removeExpired: withHeartbeat(removeExpired),
      reportRemoval,
    },
    local: { sendAtOnce: withCode(createSendAtOnce(deps)) },
  };
}

export type SendActivities = ReturnType<typeof createActivities>['sends'];
export type RecordActivities = ReturnType<typeof createActivities>['records'];
export type LocalActivities = ReturnType<typeof createActivities>['local'];

type Activity<Input, Output> = (input: Input) => Promise<Output>;

/** Well under the heartbeat timeout of the workflow (10 s), which is how soon a dead worker is noticed. */
const HEARTBEAT_MS = 2_500;

/** Shows Temporal that this process is alive while the activity runs. */
function withHeartbeat<Input, Output>(activity: Activity<Input, Output>): Activity<Input, Output> {
  return async (input) => {
    const context = Context.current();
    const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
    try {
      return await activity(input);
    } finally {
      clearInterval(timer);
    }
  };
}

/**
 * The SDK keeps only the class of an error that an activity throws; of its cause a history also has the code and the table
 * (workflows/failure-converter.ts). So an error with a code becomes the cause of one without.
 */
function withCode<Input, Output>(activity: Activity<Input, Output>): Activity<Input, Output> {
  return async (input) => {
    try {
      return await activity(input);
    } catch (error) {
      const coded = error instanceof Error && 'code' in error;
      throw coded ? new Error('an activity failed', { cause: error }) : error;
    }
  };
}
