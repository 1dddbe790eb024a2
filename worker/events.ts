import type { Logger } from 'pino';
import { Counter, Histogram, Registry } from 'prom-client';
import type { AttemptFacts, EndedNotification } from '../activities';
import type { ClaimedNotification } from '../db/notifications/claim';
import type { NotificationRef, readTrace } from '../db/notifications/notification';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { RETENTION_KINDS } from '../domain/retention';
import { describeOperatorEvent } from '../domain/operator-event';
import { showProcess } from '../runtime/process';
import { repeatedWarnings } from '../runtime/telemetry/logger';
import type { Tracing } from '../runtime/telemetry/tracing';
import { deliveryWorkflowId } from '../workflows/names';

type Details = Readonly<Record<string, unknown>>;
type AttemptRef = Pick<AttemptFacts, 'notificationId' | 'attemptNumber'>;

interface WorkerEventsDeps {
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  readonly tracing: Tracing | null;
  /** Called once for each recorded attempt where traces are made. */
  readonly readTrace: (notificationId: string) => ReturnType<typeof readTrace>;
}

export type WorkerEvents = ReturnType<typeof createWorkerEvents>;

/** Writes metrics, traces and log lines of a worker. A line about a notification names its workflow. */
export function createWorkerEvents({ logger, metrics, tracing, readTrace }: WorkerEventsDeps) {
  const repeats = repeatedWarnings(logger);
  return {
    warn: (details: Details, message: string): void => logger.warn(withWorkflow(details), message),
    started: (notification: ClaimedNotification, lagMs: number): void => {
      const { ageMs, traceParent: _, ...about } = notification;
      metrics.observeStart(notification, lagMs);
      tracing?.record({
        ...notification,
        name: 'dispatch',
        durationMs: lagMs - ageMs,
        attributes: spanAttributes(notification),
        failure: null,
      });
      if (logger.isLevelEnabled('debug'))
        logger.debug(withWorkflow({ ...about, lagMs: Math.round(lagMs) }), 'workflow started');
    },
    attempted: (outcome: DeliveryOutcome, attempt: AttemptFacts): void => {
      const { ageMs: _, traceParent: __, ...about } = attempt;
      const { kind, httpStatus, durationMs } = outcome;
      const failure = outcome.kind === 'delivered' ? null : outcome.failure;
      metrics.observeAttempt(outcome, attempt);
      tracing?.record({
        ...attempt,
        name: 'attempt',
        durationMs,
        failure,
        attributes: {
          ...spanAttributes(attempt),
          'pfqs.attempt': attempt.attemptNumber,
          'pfqs.endpoint_id': attempt.endpointId,
          'pfqs.outcome': failure ?? 'delivered',
          ...(httpStatus !== null && { 'http.response.status_code': httpStatus }),
        },
      });
      const line = { ...about, outcome: kind, ...(failure && { failure }), httpStatus, ms: durationMs };
      logger.info(withWorkflow(line), 'attempt');
    },
    recorded: ({ notificationId, attemptNumber }: AttemptRef, durationMs: number): void => {
      if (tracing === null) return;
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
        // Without its trace the step has no span.
        () => undefined,
      );
    },
    ended: ({ state, reason, eventType }: EndedNotification): void =>
      metrics.ended.inc({ state, reason, event: eventType === TEST_EVENT_TYPE ? 'test' : 'application' }),
    dispatchFailed: (error: unknown, what: string, about?: ClaimedNotification): void => {
      metrics.dispatchErrors.inc();
      const { notificationId, generation, requestId } = about ?? {};
      const known = about && withWorkflow({ notificationId, generation, requestId });
      repeats.warn({ err: error, ...known }, what);
    },
    clockIsWrong: (skewMs: number, endpoints: number): void =>
      logger.warn(
        { skewSeconds: Math.round(skewMs / 1_000), endpoints },
        'the clock of this machine is wrong: receivers refuse signatures that are some minutes off',
      ),
    requeued: (notification: NotificationRef): void => {
      metrics.requeued.inc();
      repeats.warn(
        withWorkflow({ ...notification }),
        'a delivery found no free slot for long, and is queued again',
      );
    },
    lost: (): void => {
      const kind = 'workflows_lost';
      logger.warn({ kind }, describeOperatorEvent(kind, {}));
    },
    repaired: (notification: NotificationRef, what: string): void => {
      metrics.reconciled.inc();
      logger.warn(withWorkflow({ ...notification }), `a notification under way was repaired: ${what}`);
    },
  };
}

function withWorkflow(details: Details): Details {
  const { notificationId, generation } = details;
  if (typeof notificationId !== 'string' || typeof generation !== 'number') return details;
  return { ...details, workflowId: deliveryWorkflowId(notificationId, generation) };
}

const spanAttributes = (of: ClaimedNotification | AttemptFacts) => ({
  'pfqs.workflow_id': deliveryWorkflowId(of.notificationId, of.generation),
  'pfqs.partner_id': of.partnerId,
  'pfqs.environment': of.environment,
  'pfqs.event_type': of.eventType,
  ...(of.requestId !== null && { 'pfqs.request_id': of.requestId }),
});

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/**
 * The metrics of a worker process (docs/operations/watch.md).
 * @param options.besideApi whether an API in this process already shows those of Node
 */
export function createWorkerMetrics(options: { readonly build: string | null; readonly besideApi: boolean }) {
  const registry = new Registry();
  if (!options.besideApi) showProcess(registry, options.build);
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });

  const attempts = new Histogram({
    name: 'pfqs_delivery_attempt_seconds',
    help: 'Attempts to deliver by environment and outcome: delivered, what failed, or ours: a fault of our network.',
    labelNames: ['environment', 'outcome'] as const,
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers,
  });
  const latency = new Histogram({
    name: 'pfqs_delivery_latency_seconds',
    help: 'From the commit of a notification to its delivery, retries included; not of resends and releases.',
    labelNames: ['environment'] as const,
    buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300, 1_800, 7_200, 43_200, 259_200],
    registers,
  });
  const outboxLag = new Histogram({
    name: 'pfqs_outbox_lag_seconds',
    help: 'From the commit of a notification to the start of its workflow; not of resends and releases.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1_800],
    registers,
  });
  const ended = counter(
    'pfqs_notifications_ended_total',
    'Notifications that ended otherwise than delivered, or were held, by state, reason and event: test or application.',
    'state',
    'reason',
    'event',
  );
  const started = counter('pfqs_delivery_started_total', 'Deliveries whose workflow was started.');
  const removedMuch = counter(
    'pfqs_retention_removed_much_total',
    'Rows that a run of the retention removed beyond those that expire in a day, by kind.',
    'kind',
  );
  // Alerts look for a rise of these counters. Prometheus sees no rise in a series that begins with its
  // first count, so they begin with 0.
  for (const environment of ['sandbox', 'live']) attempts.zero({ environment, outcome: 'blocked_address' });
  for (const event of ['test', 'application']) ended.inc({ state: 'failed', reason: 'exhausted', event }, 0);
  for (const kind of RETENTION_KINDS) removedMuch.inc({ kind }, 0);

  return {
    registry,
    ended,
    removedMuch,
    paths: counter(
      'pfqs_delivery_path_total',
      'Starts by path: fast, or why not: endpoint_not_fast, no_slot (half of the workflow-task slots are taken), not_eager (another build is announced, or which is current is not known).',
      'path',
    ),
    dispatchErrors: counter(
      'pfqs_dispatch_error_total',
      'Rounds of the dispatcher that failed in part or whole: Temporal or Postgres is away.',
    ),
    reconciled: counter(
      'pfqs_delivery_reconciled_total',
      'Notifications whose row and workflow disagreed, and were repaired.',
    ),
    busy: counter('pfqs_delivery_busy_total', 'Sends put off: no slot was free for their endpoint.'),
    openingsRefused: counter(
      'pfqs_delivery_refused_total',
      'Attempts that could not be opened, as Postgres refused the values of the row.',
    ),
    requeued: counter('pfqs_delivery_requeued_total', 'Deliveries queued again after 50 such sends.'),
    heldExpired: counter('pfqs_notifications_expired_total', 'Given up after 30 days without an endpoint.'),
    heldReleased: counter('pfqs_notifications_released_total', 'Held notifications sent after all.'),
    lenderStepsMissing: counter(
      'pfqs_lender_steps_missing_total',
      'Applications that moved on without steps that their lender never sent.',
    ),
    observeStart({ generation }: { readonly generation: number }, lagMs: number): void {
      started.inc();
      if (generation === 1) outboxLag.observe(lagMs / 1_000);
    },
    observeAttempt(outcome: DeliveryOutcome, attempt: AttemptFacts): void {
      const { environment, generation, ageMs } = attempt;
      if (outcome.kind === 'delivered' && generation === 1) latency.observe({ environment }, ageMs / 1_000);
      const what = outcome.kind === 'failed' ? outcome.failure : outcome.kind;
      attempts.observe({ environment, outcome: what }, outcome.durationMs / 1_000);
    },
  };
}
