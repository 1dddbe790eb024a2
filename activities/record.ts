import { ApplicationFailure } from '@temporalio/common';
import {
  endNotification,
  ForeignResult,
  recordAttempt,
  type NotificationEnd,
} from '../db/notifications/attempt';
import type { NotificationRef } from '../db/notifications/notification';
import type { Sql } from '../db/postgres/connect';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { describeOperatorEvent } from '../domain/operator-event';

export interface RecordDeps {
  /** For statements that are prepared (`plannedOnce`). */
  readonly sql: Sql;
  readonly monotonicMs: () => number;
  /** Reports to operators. */
  readonly warn: (details: Readonly<Record<string, unknown>>, message: string) => void;
  /** The outcome of an attempt has been recorded, which took this long. */
  readonly onRecorded: (
    attempt: { readonly notificationId: string; readonly attemptNumber: number },
    durationMs: number,
  ) => void;
  /** A notification has ended without being delivered, or is held. */
  readonly onEnd: (end: EndedNotification) => void;
}

export interface EndedNotification {
  readonly state: string;
  readonly reason: string;
  readonly eventType: string;
}

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
 * Records the outcome of an attempt. It is a step apart from the send, so that a failed record never sends again; a second record of the
 * same attempt changes nothing.
 */
export function createRecordResult({ sql, monotonicMs, warn, onRecorded, onEnd }: RecordDeps) {
  return async function recordResult(result: AttemptResult): Promise<void> {
    const begunMs = monotonicMs();
    const { notificationId, attemptNumber, outcome, address, end, retryInMs } = result;
    const { event, ended } = await recordAttempt(sql, result, { outcome, address }, end, retryInMs).catch(
      (error: unknown) => {
        if (!(error instanceof ForeignResult)) throw error;
        warn({ notificationId, attemptNumber }, `a reported result counts for nothing: ${error.message}`);
        // Another worker has reported a result, or the database was restored. A repetition would not help: the workflow fails, the
        // reconciler finds that, and a new workflow makes the delivery.
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

/** Ends a notification between attempts, for example because an operator cancelled it. */
export function createEndDelivery({ sql, onEnd }: Pick<RecordDeps, 'sql' | 'onEnd'>) {
  return async function endDelivery(ref: NotificationRef & { readonly end: NotificationEnd }): Promise<void> {
    const eventType = await endNotification(sql, ref, ref.end);
    if (eventType !== null) onEnd({ ...ref.end, eventType });
  };
}
