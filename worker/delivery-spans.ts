import type { AttemptFacts } from '../activities';
import type { ClaimedNotification } from '../db/notifications/claim';
import type { readTrace } from '../db/notifications/notification';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { deliveryWorkflowId } from '../workflows/names';
import type { Tracing } from '../runtime/telemetry/tracing';

export interface DeliverySpansDeps {
  readonly tracing: Tracing;
  /** Asked once per attempt that was written down. */
  readonly readTrace: (notificationId: string) => ReturnType<typeof readTrace>;
}

/** The steps of a delivery as spans of the request's trace: ids and outcomes, and nothing else of it. */
export function createDeliverySpans({ tracing, readTrace }: DeliverySpansDeps) {
  const ids = (of: ClaimedNotification | AttemptFacts) => ({
    'pfqs.workflow_id': deliveryWorkflowId(of.notificationId, of.generation),
    'pfqs.partner_id': of.partnerId,
    'pfqs.environment': of.environment,
    'pfqs.event_type': of.eventType,
    ...(of.requestId !== null && { 'pfqs.request_id': of.requestId }),
  });
  return {
    /** From the claim to the start of the workflow. */
    dispatched: (notification: ClaimedNotification, durationMs: number): void =>
      tracing.record({
        ...notification,
        name: 'dispatch',
        durationMs,
        attributes: ids(notification),
        failure: null,
      }),
    attempted: (outcome: DeliveryOutcome, attempt: AttemptFacts): void => {
      const failure = outcome.kind === 'failed' ? outcome.failure : null;
      tracing.record({
        ...attempt,
        name: 'attempt',
        durationMs: outcome.durationMs,
        failure,
        attributes: {
          ...ids(attempt),
          'pfqs.attempt': attempt.attemptNumber,
          'pfqs.endpoint_id': attempt.endpointId,
          'pfqs.outcome': failure ?? 'delivered',
          ...(outcome.httpStatus !== null && { 'http.response.status_code': outcome.httpStatus }),
        },
      });
    },
    recorded: (
      { notificationId, attemptNumber }: Pick<AttemptFacts, 'notificationId' | 'attemptNumber'>,
      durationMs: number,
    ): void => {
      const endedMs = Date.now();
      readTrace(notificationId).then(
        (known) =>
          tracing.record({
            name: 'record',
            notificationId,
            traceParent: known?.traceParent ?? null,
            durationMs,
            endedMs,
            failure: null,
            attributes: {
              'pfqs.attempt': attemptNumber,
              ...(known?.requestId != null && { 'pfqs.request_id': known.requestId }),
            },
          }),
        // Of a step that has been done, only its span is missing.
        () => undefined,
      );
    },
  };
}
