import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { TEST_EVENT_TYPE } from '../../contracts/webhook-event';
import type { Db } from '../../db/postgres/connect';
import { inRound } from '../../db/postgres/deadline';
import { expireHeld, warnOfExpiry } from '../../db/notifications/expire';
import { healthFigures } from '../../db/endpoints/figures';
import { holdPending, queuesToHold } from '../../db/notifications/hold';
import { queuesToRelease, releaseHeld } from '../../db/notifications/release';
import { startKeeper } from '../../dispatcher/keeper';
import type { Loop } from '../../timing/loop';
import { describeOperatorEvent } from '../../domain/operator-event';
import { createHealthMetrics } from '../telemetry/health-metrics';

/** What the loops of a worker process share. */
export interface WorkerLoopOptions {
  readonly db: Db;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly everyMs: number;
}

/** The keeper of a worker process, with its metrics and its lines in the log. */
export function startWorkerKeeper({ db, logger, registry, everyMs }: WorkerLoopOptions): Loop {
  const metrics = createHealthMetrics(registry, () => healthFigures(db));
  return startKeeper({
    queuesToHold: () => inRound(queuesToHold(db), 'keeper'),
    hold: (queue, limit) =>
      inRound(holdPending(db, queue, { limit, testEventType: TEST_EVENT_TYPE }), 'keeper'),
    queuesToRelease: () => inRound(queuesToRelease(db), 'keeper'),
    release: (queue, limit) => inRound(releaseHeld(db, queue, { limit }), 'keeper'),
    expire: (limit) => inRound(expireHeld(db, { limit }), 'keeper'),
    warn: () => inRound(warnOfExpiry(db), 'keeper'),
    onMoved(what, { partnerId, environment }, count) {
      if (what === 'released') metrics.released.inc(count);
      logger.info({ partnerId, environment, count }, `notifications were ${what}`);
    },
    onEvent({ kind, partnerId, environment, endpointId, details }) {
      if (kind === 'notifications_expired') metrics.expired.inc(Number(details['count']));
      const message = describeOperatorEvent(kind, details);
      logger.warn({ kind, partnerId, environment, endpointId, ...details }, message);
    },
    onError: (error, what) => logger.warn({ err: error }, what),
    monotonicMs: () => performance.now(),
    everyMs,
  });
}
