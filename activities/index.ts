import { Context } from '@temporalio/activity';
import { createDelivery, createEndDelivery, type DeliverDeps } from './deliver';
import { createRetentionActivities, type RetentionDeps } from './remove-expired';

export type { AttemptFacts, EndedNotification, Outage, ReachedBy, SendWebhook } from './attempt';
export type { AttemptResult, Busy } from './deliver';

/** Every side effect of the workflows. Sends have their own task queue: slow partners delay no record. */
export function createActivities(deps: DeliverDeps & RetentionDeps) {
  const { sendAttempt, attemptAtOnce, recordResult } = createDelivery(deps);
  const { removeExpired, reportRemoval } = createRetentionActivities(deps);
  return {
    sends: { sendAttempt: withCode(withHeartbeat(sendAttempt)) },
    records: {
      recordResult: withCode(recordResult),
      endDelivery: withCode(createEndDelivery(deps)),
      removeExpired: withHeartbeat(removeExpired),
      reportRemoval,
    },
    local: { attemptAtOnce: withCode(attemptAtOnce) },
  };
}

export type SendActivities = ReturnType<typeof createActivities>['sends'];
export type RecordActivities = ReturnType<typeof createActivities>['records'];
export type LocalActivities = ReturnType<typeof createActivities>['local'];

type Activity<Input, Output> = (input: Input) => Promise<Output>;

/** Well under the heartbeat timeout of the workflow, 10 s, after which a worker counts as dead. */
const HEARTBEAT_MS = 2_500;

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
 * The SDK keeps only the class of a thrown error, but code and table of its cause
 * (failure-converter.ts). An error with a code therefore becomes a cause.
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
