import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { AttemptFacts, SendSlots } from '../activities';
import type { Backlog } from '../db/figures';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { RETENTION_KINDS } from '../domain/retention';
import { sharedGauges } from '../runtime/telemetry/shared-gauges';

/**
 * What a worker process counts. Names are in docs/operations/watch.md.
 * @param options.ofProcess whether the process shows its own metrics (CPU, memory, event loop) here; beside an API it does so there.
 */
export function createWorkerMetrics({ ofProcess }: { readonly ofProcess: boolean }) {
  const registry = new Registry();
  if (ofProcess) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });

  const attempts = new Histogram({
    name: 'pfqs_delivery_attempt_seconds',
    help: 'Attempts to deliver by environment and outcome: delivered, or what failed.',
    labelNames: ['environment', 'outcome'] as const,
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers,
  });
  // Shown from the start, as alerts ask for a rise of it: Prometheus sees none in what appears with its first one.
  for (const environment of ['sandbox', 'live']) attempts.zero({ environment, outcome: 'blocked_address' });
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
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
    registers,
  });
  const ended = counter(
    'pfqs_notifications_ended_total',
    'Notifications that ended otherwise than delivered, or were held, by state, reason and event: test or application.',
    'state',
    'reason',
    'event',
  );
  for (const event of ['test', 'application']) ended.inc({ state: 'failed', reason: 'exhausted', event }, 0);
  const started = counter('pfqs_delivery_started_total', 'Deliveries whose workflow was started.');

  const removedMuch = counter(
    'pfqs_retention_removed_much_total',
    'Rows that a run of the retention removed beside those that come of age in a day, by kind.',
    'kind',
  );
  for (const kind of RETENTION_KINDS) removedMuch.inc({ kind }, 0);

  return {
    registry,
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
      'Notifications whose row and workflow disagreed, and were mended.',
    ),
    busy: counter(
      'pfqs_delivery_busy_total',
      'Sends put off because enough were under way to their endpoint.',
    ),
    ended,
    removedMuch,
    /** @param lagMs from the commit to the start. */
    observeStart({ generation }: { readonly generation: number }, lagMs: number): void {
      started.inc();
      if (generation === 1) outboxLag.observe(lagMs / 1_000);
    },
    observeAttempt(outcome: DeliveryOutcome, attempt: AttemptFacts): void {
      const { environment, generation, ageMs } = attempt;
      if (outcome.kind === 'delivered' && generation === 1) latency.observe({ environment }, ageMs / 1_000);
      const what = outcome.kind === 'delivered' ? 'delivered' : outcome.failure;
      attempts.observe({ environment, outcome: what }, outcome.durationMs / 1_000);
    },
  };
}

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

interface WorkerGaugesDeps {
  readonly backlog: () => Promise<Backlog>;
  readonly clockSkewMs: () => number | null;
  readonly underWay: SendSlots['underWay'];
  /** Most attempts under way in this process. */
  readonly mostSends: number;
  readonly buildIsCurrent: () => boolean;
}

/** How a worker process stands, read with each scrape. */
export function createWorkerGauges(registry: Registry, deps: WorkerGaugesDeps): void {
  const { backlog, clockSkewMs, underWay, buildIsCurrent } = deps;
  const waiting = sharedGauges(registry, backlog);
  waiting('pfqs_notifications_pending', 'Notifications that wait for their workflow.', (one) => one.pending);
  waiting(
    'pfqs_notifications_oldest_pending_seconds',
    'Age of the oldest of them whose endpoint has a free slot.',
    ({ oldestMs }) => oldestMs / 1_000,
  );
  waiting(
    'pfqs_notifications_capped',
    'Of those, due and behind as many first attempts as their endpoint has slots.',
    ({ capped }) => capped,
  );
  waiting(
    'pfqs_notifications_oldest_capped_seconds',
    'How long the oldest of them has been due.',
    ({ oldestCappedMs }) => oldestCappedMs / 1_000,
  );
  const here = sharedGauges(registry, async () => underWay());
  here('pfqs_delivery_places', 'Most attempts that can be under way in this process.', () => deps.mostSends);
  here('pfqs_deliveries_under_way', 'Attempts under way in this process.', ({ all }) => all);
  here('pfqs_deliveries_under_way_most', 'Of those, to the one endpoint that has most.', ({ most }) => most);
  here(
    'pfqs_clock_skew_seconds',
    'How far the clock here is ahead of those of most endpoints; NaN while too few have been heard.',
    () => (clockSkewMs() ?? Number.NaN) / 1_000,
  );
  here(
    'pfqs_worker_build_current',
    'Whether this worker is of the build that Temporal gives new deliveries to: 1 or 0.',
    () => (buildIsCurrent() ? 1 : 0),
  );
}
