import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import {
  endNotification,
  ForeignResult,
  recordAttempt,
  type NotificationEnd,
} from '../db/notifications/attempt';
import type { NotificationRef } from '../db/notifications/notification';
import { describeOperatorEvent } from '../domain/operator-event';
import { createSendAtOnce, createSendAttempt, type AttemptDeps, type AttemptResult } from './attempt';
import { createRetentionActivities, type RetentionDeps } from './remove-expired';

export type {
  AttemptFacts,
  AttemptResult,
  Busy,
  EndedNotification,
  Outage,
  ReachedBy,
  SendWebhook,
} from './attempt';

/** Every side effect of the workflows. Sends have their own task queue: slow partners delay no record. */
export function createActivities(deps: AttemptDeps & RecordingDeps & RetentionDeps) {
  const recordResult = createRecordResult(deps);
  const { removeExpired, reportRemoval } = createRetentionActivities(deps);
  return {
    sends: { sendAttempt: withCode(withHeartbeat(createSendAttempt(deps))) },
    records: {
      recordResult: withCode(recordResult),
      endDelivery: withCode(createEndDelivery(deps)),
      removeExpired: withHeartbeat(removeExpired),
      reportRemoval,
    },
    local: { sendAtOnce: withCode(createSendAtOnce(deps, recordResult)) },
  };
}

export type SendActivities = ReturnType<typeof createActivities>['sends'];
export type RecordActivities = ReturnType<typeof createActivities>['records'];
export type LocalActivities = ReturnType<typeof createActivities>['local'];

interface RecordingDeps extends Pick<AttemptDeps, 'sql' | 'monotonicMs' | 'warn' | 'onEnd'> {
  readonly onRecorded: (
    attempt: { readonly notificationId: string; readonly attemptNumber: number },
    durationMs: number,
  ) => void;
}

/**
 * Records the outcome of an attempt. This is apart from the send, so that a failed record never sends
 * again. A second record changes nothing.
 */
export function createRecordResult({ sql, monotonicMs, warn, onRecorded, onEnd }: RecordingDeps) {
  return async function recordResult(result: AttemptResult): Promise<void> {
    const begunMs = monotonicMs();
    const { notificationId, attemptNumber, outcome, address, end, retryInMs } = result;
    const { event, ended } = await recordAttempt(sql, result, { outcome, address }, end, retryInMs).catch(
      (error: unknown) => {
        if (!(error instanceof ForeignResult)) throw error;
        warn({ notificationId, attemptNumber }, `a reported result counts for nothing: ${error.message}`);
        // Another worker has reported a result, or the database was restored. A retry would not help.
        // The workflow fails, the reconciler notices, and a new workflow makes the delivery.
        throw ApplicationFailure.nonRetryable(error.message, 'foreign_result');
      },
    );
    if (end !== null && ended !== null) onEnd({ ...end, eventType: ended });
    if (event !== null) {
      const { kind, partnerId, environment, endpointId, details } = event;
      warn(
        { kind, partnerId, environment, endpointId, notificationId, ...details },
        describeOperatorEvent(kind, details),
      );
    }
    onRecorded(result, monotonicMs() - begunMs);
  };
}

function createEndDelivery({ sql, onEnd }: Pick<RecordingDeps, 'sql' | 'onEnd'>) {
  return async function endDelivery(ref: NotificationRef & { readonly end: NotificationEnd }): Promise<void> {
    const eventType = await endNotification(sql, ref, ref.end);
    if (eventType !== null) onEnd({ ...ref.end, eventType });
  };
}

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
