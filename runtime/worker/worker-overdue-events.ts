import { Counter } from 'prom-client';
import { applicationEventText } from '../../contracts/application-event';
import { inRound } from '../../db/postgres/deadline';
import {
  applyOverdueEvents,
  overdueApplications,
  waitingFigures,
} from '../../db/applications/apply-overdue-events';
import { startOverdueEvents } from '../../dispatcher/overdue-events';
import { describeOperatorEvent } from '../../domain/operator-event';
import type { Loop } from '../../timing/loop';
import { sharedGauges } from '../telemetry/shared-gauges';
import type { WorkerLoopOptions } from './worker-keeper';

/** What a worker process does for lenders' events that wait, with its metrics and its lines in the log. */
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
  return startOverdueEvents({
    overdue: (limit) => inRound(overdueApplications(db, limit), 'overdue lender events'),
    apply: (id) => inRound(applyOverdueEvents(db, id, applicationEventText), 'overdue lender events'),
    onEvent({ kind, partnerId, environment, details }) {
      missing.inc();
      logger.warn({ kind, partnerId, environment, ...details }, describeOperatorEvent(kind, details));
    },
    onError: (error, what) => logger.warn({ err: error }, what),
    everyMs,
  });
}
