import { Counter } from 'prom-client';
import { applicationEventText } from '../contracts/webhook-event';
import { applyOverdueEvents, overdueApplications } from '../db/applications/apply-overdue-events';
import { waitingFigures } from '../db/figures';
import { describeOperatorEvent } from '../domain/operator-event';
import { ROUND_TIMEOUT_MS, startLoop, type Loop } from '../timing/loop';
import { withTimeout } from '../timing/timeout';
import { sharedGauges } from '../runtime/telemetry/shared-gauges';
import type { WorkerLoopOptions } from './keeper';

/** Applications of one round; each is a transaction of some milliseconds. */
const PER_ROUND = 200;

/**
 * Applies lenders' events whose wait for the steps before them is over. Every worker runs one; the lock of the
 * application's row lets one of them apply each. It needs no Temporal.
 */
export function startWorkerOverdueEvents({ db, logger, registry, everyMs }: WorkerLoopOptions): Loop {
  const gauge = sharedGauges(registry, () => waitingFigures(db));
  gauge(
    'pfqs_lender_events_waiting',
    "Lenders' events that wait for the steps before them.",
    ({ waiting }) => waiting,
  );
  gauge(
    'pfqs_lender_events_oldest_waiting_seconds',
    'Time since the oldest of them was received.',
    ({ oldestSeconds }) => oldestSeconds,
  );
  gauge(
    'pfqs_lender_events_overdue_seconds',
    'Time since the first wait was over that has not been ended yet.',
    ({ overdueSeconds }) => overdueSeconds,
  );
  const missing = new Counter({
    name: 'pfqs_lender_steps_missing_total',
    help: 'Applications that moved on without steps that their lender never sent.',
    registers: [registry],
  });
  const bounded = <T>(query: PromiseLike<T>) => withTimeout(query, ROUND_TIMEOUT_MS, 'overdue lender events');

  async function round(stopped: () => boolean): Promise<'again' | void> {
    let applied = 0;
    for (const applicationId of await bounded(overdueApplications(db, PER_ROUND))) {
      if (stopped()) break;
      // An application whose event cannot be applied must not hold up the others.
      try {
        const event = await bounded(applyOverdueEvents(db, applicationId, applicationEventText));
        if (event === null) continue;
        applied += 1;
        missing.inc();
        const { kind, partnerId, environment, details } = event;
        logger.warn({ kind, partnerId, environment, ...details }, describeOperatorEvent(kind, details));
      } catch (error) {
        logger.warn({ err: error }, `overdue lender events of ${applicationId} could not be applied`);
      }
    }
    if (applied === PER_ROUND) return 'again';
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => logger.warn({ err: error }, 'overdue lender events cannot be read for now'),
  });
}
