import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Lanes } from '../activities';
import type { Backlog } from '../db/queries/dispatch';
import type { DeliveryOutcome } from '../domain/delivery-outcome';

export interface WorkerMetricsDeps {
  readonly backlog: () => Promise<Backlog>;
  readonly clockSkewMs: () => number | null;
  readonly underWay: Lanes['underWay'];
}

/** What a worker process counts. Names are in docs/operations/watch.md. */
export function createWorkerMetrics({ backlog, clockSkewMs, underWay }: WorkerMetricsDeps) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const attempts = new Histogram({
    name: 'pfqs_delivery_attempt_seconds',
    help: 'Attempts to deliver by environment and outcome: delivered, or what failed.',
    labelNames: ['environment', 'outcome'] as const,
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers,
  });
  const started = new Counter({
    name: 'pfqs_delivery_started_total',
    help: 'Deliveries whose workflow was started.',
    registers,
  });
  const paths = new Counter({
    name: 'pfqs_delivery_path_total',
    help: 'Starts by path: fast, or why not: endpoint_not_fast, no_place (half of the workflow-task slots are taken).',
    labelNames: ['path'] as const,
    registers,
  });
  const dispatchErrors = new Counter({
    name: 'pfqs_dispatch_error_total',
    help: 'Rounds of the dispatcher that failed in part or whole: Temporal or Postgres is away.',
    registers,
  });
  const reconciled = new Counter({
    name: 'pfqs_delivery_reconciled_total',
    help: 'Notifications whose row and workflow disagreed, and were mended.',
    registers,
  });
  const pending = new Gauge({
    name: 'pfqs_notifications_pending',
    help: 'Notifications that wait for their workflow.',
    registers,
    async collect() {
      const figures = await backlog();
      this.set(figures.pending);
      oldest.set(figures.oldestMs / 1_000);
      capped.set(figures.capped);
      oldestCapped.set(figures.oldestCappedMs / 1_000);
    },
  });
  const capped = new Gauge({
    name: 'pfqs_notifications_capped',
    help: 'Of those, due and behind as many first attempts as their endpoint has places.',
    registers,
  });
  const oldestCapped = new Gauge({
    name: 'pfqs_notifications_oldest_capped_seconds',
    help: 'How long the oldest of them has been due.',
    registers,
  });
  const oldest = new Gauge({
    name: 'pfqs_notifications_oldest_pending_seconds',
    help: 'Age of the oldest of them.',
    registers,
  });
  const busy = new Counter({
    name: 'pfqs_delivery_busy_total',
    help: 'Sends put off because enough were under way to their endpoint.',
    registers,
  });
  const underWayNow = new Gauge({
    name: 'pfqs_deliveries_under_way',
    help: 'Attempts under way in this process.',
    registers,
    collect() {
      const { all, most } = underWay();
      this.set(all);
      underWayMost.set(most);
    },
  });
  const underWayMost = new Gauge({
    name: 'pfqs_deliveries_under_way_most',
    help: 'Of those, to the one endpoint that has most.',
    registers,
  });
  const clockSkew = new Gauge({
    name: 'pfqs_clock_skew_seconds',
    help: 'How far the clock here is ahead of those of most endpoints; NaN while too few have been heard.',
    registers,
    collect() {
      const skewMs = clockSkewMs();
      this.set(skewMs === null ? Number.NaN : skewMs / 1_000);
    },
  });
  return {
    registry,
    clockSkew,
    started,
    paths,
    dispatchErrors,
    reconciled,
    pending,
    underWayNow,
    busy,
    observeAttempt(outcome: DeliveryOutcome, environment: 'sandbox' | 'live'): void {
      const what = outcome.kind === 'delivered' ? 'delivered' : outcome.failure;
      attempts.observe({ environment, outcome: what }, outcome.durationMs / 1_000);
    },
  };
}

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;
