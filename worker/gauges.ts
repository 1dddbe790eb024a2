import { Gauge, type Registry } from 'prom-client';
import { LIMIT_SHARES, refreshFigures, storedFigures, type Figures } from '../db/figures';
import type { Db, Sql } from '../db/postgres/connect';
import { certificateLife } from '../runtime/temporal/temporal-target';
import { inRound, startLoop, withTimeout, type Loop } from '../timing/timing';
import type { WorkerOptions } from './options';
import type { SendSlots } from './slots';

interface WorkerGaugesDeps extends Pick<WorkerOptions, 'temporal' | 'mostSends'> {
  readonly sql: Sql;
  readonly underWay: SendSlots['underWay'];
  readonly clockSkewMs: () => number | null;
  readonly cutOffSince: () => Date | null;
  readonly buildIsCurrent: () => boolean;
}

/** Counts over all rows, in one of the workers at a time. */
export const startFigures = (db: Db, everyMs: number, onError: (error: unknown) => void): Loop =>
  startLoop({
    round: () => inRound(refreshFigures(db, everyMs, () => performance.now())),
    // Spreads the workers.
    everyMs: () => everyMs * (1 + Math.random() / 10),
    onError,
  });

/** Stored figures that are older are not served, so that FiguresMissing fires. */
const OLDEST_SERVED_MS = 180_000;

/** The gauges of a worker process, read at each scrape. Those of stored figures are the same in all workers. */
export function createWorkerGauges(registry: Registry, deps: WorkerGaugesDeps): void {
  const stored = shared(async () => {
    const found = await storedFigures(deps.sql);
    if (found === null || found.ageMs > OLDEST_SERVED_MS) throw new Error('no worker has counted lately');
    return found;
  });
  const part =
    <Name extends keyof Figures>(name: Name) =>
    async () =>
      (await stored()).figures[name];

  addGauges(registry, stored, {
    pfqs_figures_age_seconds: [
      'How long ago a worker counted the figures of all rows: those of notifications, endpoints, lenders and Postgres.',
      ({ ageMs }) => ageMs / 1_000,
    ],
  });
  addGauges(registry, part('backlog'), {
    pfqs_notifications_pending: ['Notifications that wait for their workflow.', (one) => one.pending],
    pfqs_notifications_oldest_pending_seconds: [
      'Age of the oldest of them whose endpoint has a free slot.',
      ({ oldestMs }) => oldestMs / 1_000,
    ],
    pfqs_notifications_capped: [
      'Of those, due and behind as many first attempts as their endpoint has slots.',
      ({ capped }) => capped,
    ],
    pfqs_notifications_oldest_capped_seconds: [
      'How long the oldest of them has been due.',
      ({ oldestCappedMs }) => oldestCappedMs / 1_000,
    ],
  });
  addGauges(registry, part('deliveries'), {
    pfqs_notifications_undelivered: [
      'Notifications that have not ended, by state.',
      ({ undelivered }) => by('state', undelivered),
      'state',
    ],
    pfqs_notifications_oldest_overdue_seconds: [
      'How long the next attempt of a started delivery has been due, the longest of all.',
      ({ overdueMs }) => overdueMs / 1_000,
    ],
    pfqs_notifications_oldest_paused_seconds: [
      'How long the oldest pause of a delivery or of a partner has lasted.',
      ({ oldestPausedMs }) => oldestPausedMs / 1_000,
    ],
    pfqs_partners_paused: [
      'Partners whose deliveries somebody has paused, each environment counted.',
      ({ queuesPaused }) => queuesPaused,
    ],
    pfqs_notifications_late: [
      'Events of applications that have not been delivered a minute after they were created.',
      ({ late }) => late,
    ],
    pfqs_notifications_this_month: [
      'Notifications counted in this UTC month, by environment and result: delivered or failed.',
      ({ month }) =>
        month.flatMap(({ environment, delivered, failed }) => [
          [{ environment, result: 'delivered' }, delivered] as const,
          [{ environment, result: 'failed' }, failed] as const,
        ]),
      'environment',
      'result',
    ],
    pfqs_test_limit_partners: [
      'Partners that have used at least so many per cent of the test notifications of this UTC month.',
      ({ month }) =>
        month.flatMap(({ environment, limitUsed }) =>
          LIMIT_SHARES.map((used, at) => [{ environment, used }, limitUsed[at] ?? 0] as const),
        ),
      'environment',
      'used',
    ],
  });
  // These are for all partners together. An endpoint that the service disabled is named by its id.
  addGauges(registry, part('health'), {
    pfqs_notifications_held: ['Notifications that wait for an active endpoint.', ({ held }) => held],
    pfqs_notifications_oldest_held_seconds: [
      'How long the oldest of them has been held.',
      ({ oldestHeldMs }) => oldestHeldMs / 1_000,
    ],
    pfqs_notifications_expiring: [
      'Held notifications that expire within seven days.',
      ({ expiring }) => expiring,
    ],
    pfqs_webhook_endpoints_disabled: [
      'Disabled endpoints by reason.',
      ({ disabled }) => by('reason', disabled),
      'reason',
    ],
    pfqs_webhook_endpoint_given_up: [
      'Each endpoint that the service disabled, by its id and the reason: 1 until it is enabled, replaced, or disabled by an operator.',
      ({ givenUp }) => givenUp.map((one) => [one, 1] as const),
      'endpoint',
      'reason',
    ],
    pfqs_webhook_endpoints_failing: [
      'Active endpoints that have answered nothing but failures for at least so many hours.',
      ({ failing }) => failing.map(({ hours, count }) => [{ hours }, count] as const),
      'hours',
    ],
    pfqs_partners_failing: [
      'Partners whose live endpoint has failed for an hour while events of applications wait for their next attempt.',
      ({ partnersFailing }) => partnersFailing,
    ],
  });
  addGauges(registry, part('waiting'), {
    pfqs_lender_events_waiting: [
      "Lenders' events that wait for the steps before them.",
      ({ waiting }) => waiting,
    ],
    pfqs_lender_events_oldest_waiting_seconds: [
      'Time since the oldest of them was received.',
      ({ oldestSeconds }) => oldestSeconds,
    ],
    pfqs_lender_events_overdue_seconds: [
      'Time since the first wait was over that has not been ended yet.',
      ({ overdueSeconds }) => overdueSeconds,
    ],
  });
  addGauges(registry, part('contradictions'), {
    pfqs_lender_contradictions: [
      "Lenders' events of the last 24 hours that contradict the state of their application, by lender and environment.",
      (found) => found.map(({ count, ...labels }) => [labels, count] as const),
      'lender',
      'environment',
    ],
  });
  addGauges(registry, part('database'), {
    pfqs_partition_months_ahead: [
      'Months after the present one that every table has a partition for.',
      ({ monthsAhead }) => monthsAhead,
    ],
    pfqs_archive_failing_seconds: [
      'How long Postgres has not been able to archive its write-ahead log; 0: it can, or has no archive.',
      ({ archiveFailingMs }) => archiveFailingMs / 1_000,
    ],
    pfqs_login_settings: [
      'Settings that logins of Postgres have made for themselves (ALTER ROLE); the service makes none.',
      ({ loginSettings }) => loginSettings,
    ],
  });
  addGauges(registry, async () => deps.underWay(), {
    pfqs_delivery_slots: ['Most attempts that can be under way in this process.', () => deps.mostSends],
    pfqs_deliveries_under_way: ['Attempts under way in this process.', ({ all }) => all],
    pfqs_deliveries_under_way_most: ['Of those, to the one endpoint that has most.', ({ most }) => most],
    pfqs_clock_skew_seconds: [
      'How far this clock is ahead of those of most endpoints; NaN while too few have answered.',
      () => (deps.clockSkewMs() ?? Number.NaN) / 1_000,
    ],
    pfqs_network_outage_seconds: [
      'How long the network of this worker has reached nobody; 0 while it does.',
      () => {
        const since = deps.cutOffSince();
        return since === null ? 0 : (Date.now() - since.getTime()) / 1_000;
      },
    ],
    pfqs_worker_build_current: [
      'Whether this worker is of the build that Temporal gives new deliveries to: 1 or 0.',
      () => (deps.buildIsCurrent() ? 1 : 0),
    ],
    pfqs_temporal_certificate_expires_timestamp_seconds: [
      'When the client certificate ends that this process started with; NaN without one.',
      () => certificateLife(deps.temporal).endsMs / 1_000,
    ],
    pfqs_temporal_certificate_lifetime_seconds: [
      'For how long that certificate is valid, from its first moment to its last; NaN without one.',
      () => certificateLife(deps.temporal).lifetimeMs / 1_000,
    ],
  });
}

/** One figure, or one for each value of the labels. */
type Shown =
  number | readonly (readonly [labels: Readonly<Record<string, string | number>>, figure: number])[];

/** Gauges by name. */
type Gauges<Source> = Readonly<
  Record<string, readonly [help: string, show: (of: Source) => Shown, ...labelNames: string[]]>
>;

/** Longest time that a scrape waits for figures, in milliseconds. Prometheus waits 10 s for the page. */
const SCRAPE_WAITS_MS = 3_000;

/** Shares a read that has not ended, so that reads do not pile up on a frozen Postgres. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | null = null;
  return () => {
    reading ??= inRound(read()).finally(() => {
      reading = null;
    });
    return withTimeout(reading, SCRAPE_WAITS_MS, 'figures');
  };
}

/**
 * Adds gauges of one source. Without Postgres they have no series, and the alert FiguresMissing fires; neither have
 * figures that another build has stored in another form.
 */
function addGauges<Source>(registry: Registry, read: () => Promise<Source>, gauges: Gauges<Source>) {
  for (const [name, [help, show, ...labelNames]] of Object.entries(gauges))
    void new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const shown = await read()
          .then(show)
          .catch(() => null);
        // The labels of the last scrape may be gone. Without labels a reset leaves the series at 0.
        this.reset();
        if (labelNames.length === 0) this.remove();
        if (shown === null) return;
        if (typeof shown === 'number') this.set(shown);
        else for (const [labels, figure] of shown) this.set(labels, figure);
      },
    });
}

const by = (label: string, counts: Readonly<Record<string, number>>): Shown =>
  Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
