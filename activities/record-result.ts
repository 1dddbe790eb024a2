import { ApplicationFailure } from '@temporalio/common';
import {
  recordAttempt,
  endNotification,
  ForeignResult,
  type NotificationEnd,
} from '../db/notifications/attempt';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { describeOperatorEvent } from '../domain/operator-event';
import type { ActivityDeps } from './deps';
import type { NotificationRef } from '../db/notifications/notification';

export interface AttemptResult {
  readonly notificationId: string;
  readonly attemptNumber: number;
  readonly outcome: DeliveryOutcome;
  readonly address: string | null;
  /** Null while further attempts follow, and for a delivery. */
  readonly end: NotificationEnd | null;
  /** Wait before the next attempt, in milliseconds; null when none follows. */
  readonly retryInMs: number | null;
}

/**
 * Records the outcome of an attempt. Apart from the send, so that a database that is away never sends again; doing it
 * twice changes nothing.
 */
export function createRecordResult(deps: RecordDeps) {
  return async function recordResult(result: AttemptResult): Promise<void> {
    const begunMs = deps.monotonicMs();
    await record(deps, result);
    deps.onRecorded(result, deps.monotonicMs() - begunMs);
  };
}

type RecordDeps = Pick<ActivityDeps, 'sql' | 'warn' | 'onEnd' | 'onRecorded' | 'monotonicMs'>;

async function record({ sql, warn, onEnd }: RecordDeps, result: AttemptResult): Promise<void> {
  const { outcome, address, end, retryInMs } = result;
  const { event, ended } = await recordAttempt(sql, result, { outcome, address }, end, retryInMs).catch(
    (error: unknown) => {
      if (!(error instanceof ForeignResult)) throw error;
      const { notificationId, attemptNumber } = result;
      warn({ notificationId, attemptNumber }, `a reported result counts for nothing: ${error.message}`);
      // Somebody else has answered, or the database was restored. Trying again would not help: the workflow fails, the
      // reconciler finds that, and a new workflow makes the delivery.
      throw ApplicationFailure.nonRetryable(error.message, 'foreign_result');
    },
  );
  if (end !== null && ended !== null) onEnd({ ...end, eventType: ended });
  if (event !== null) {
    const { kind, partnerId, environment, endpointId, details } = event;
    const { notificationId } = result;
    warn(
      { kind, partnerId, environment, endpointId, notificationId, ...details },
      describeOperatorEvent(kind, details),
    );
  }
}

/** Ends a notification between attempts, for example because an operator cancelled it. */
export function createEndDelivery({ sql, onEnd }: Pick<ActivityDeps, 'sql' | 'onEnd'>) {
  return async function endDelivery(ref: NotificationRef & { readonly end: NotificationEnd }): Promise<void> {
    const eventType = await endNotification(sql, ref, ref.end);
    if (eventType !== null) onEnd({ ...ref.end, eventType });
  };
}
