import { TEST_EVENT_TYPE } from '../domain/notification-states';
import type { Logger } from 'pino';
import type { AttemptFacts, EndedNotification } from '../activities';
import type { ClaimedNotification } from '../db/notifications/claim';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { deliveryWorkflowId } from '../workflows/names';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import { createDeliverySpans, type DeliverySpansDeps } from './delivery-spans';
import type { Tracing } from '../runtime/telemetry/tracing';
import type { WorkerMetrics } from './metrics';

type Details = Readonly<Record<string, unknown>>;

interface WorkerEventsDeps extends Omit<DeliverySpansDeps, 'tracing'> {
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  /** Null: no traces are made. */
  readonly tracing: Tracing | null;
}

/**
 * Reports what happens in a worker to metrics, traces and log. A line about a notification names its workflow and, where
 * known, its request.
 */
export function createWorkerEvents({ logger, metrics, tracing, readTrace }: WorkerEventsDeps) {
  const spans = tracing && createDeliverySpans({ tracing, readTrace });
  const repeats = repeatedWarnings(logger);
  return {
    warn: (details: Details, message: string) => logger.warn(withWorkflow(details), message),
    attempted: (outcome: DeliveryOutcome, attempt: AttemptFacts): void => {
      metrics.observeAttempt(outcome, attempt);
      spans?.attempted(outcome, attempt);
      const { ageMs: _, traceParent: __, ...about } = attempt;
      const { kind, httpStatus, durationMs } = outcome;
      const failure = outcome.kind === 'failed' ? outcome.failure : undefined;
      logger.info(withWorkflow({ ...about, outcome: kind, failure, httpStatus, ms: durationMs }), 'attempt');
    },
    ended: ({ state, reason, eventType }: EndedNotification) =>
      metrics.ended.inc({ state, reason, event: eventType === TEST_EVENT_TYPE ? 'test' : 'application' }),
    started: (notification: ClaimedNotification, lagMs: number): void => {
      metrics.observeStart(notification, lagMs);
      spans?.dispatched(notification, lagMs - notification.ageMs);
      if (!logger.isLevelEnabled('debug')) return;
      const { ageMs: _, traceParent: __, ...about } = notification;
      logger.debug(withWorkflow({ ...about, lagMs: Math.round(lagMs) }), 'workflow started');
    },
    recorded: (attempt: Pick<AttemptFacts, 'notificationId' | 'attemptNumber'>, durationMs: number): void =>
      spans?.recorded(attempt, durationMs),
    /** @param about one of those that it concerns. */
    dispatchFailed: (error: unknown, what: string, about?: ClaimedNotification): void => {
      metrics.dispatchErrors.inc();
      const { notificationId, generation, requestId } = about ?? {};
      repeats.warn(
        { err: error, ...(about && withWorkflow({ notificationId, generation, requestId })) },
        what,
      );
    },
    mended: (notification: Details, what: string): void => {
      metrics.reconciled.inc();
      logger.warn(withWorkflow(notification), `a notification under way was mended: ${what}`);
    },
  };
}

export type WorkerEvents = ReturnType<typeof createWorkerEvents>;

function withWorkflow(details: Details): Details {
  const { notificationId, generation } = details;
  if (typeof notificationId !== 'string' || typeof generation !== 'number') return details;
  return { ...details, workflowId: deliveryWorkflowId(notificationId, generation) };
}
