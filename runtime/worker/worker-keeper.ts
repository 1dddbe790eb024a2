import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { TEST_EVENT_TYPE } from '../../contracts/webhook-event';
import type { Db } from '../../db/postgres/connect';
import { expireHeld, warnOfExpiry } from '../../db/notifications/expire';
import { healthFigures } from '../../db/endpoints/figures';
import { holdPending, lanesToHold } from '../../db/notifications/hold';
import { lanesToRelease, releaseHeld } from '../../db/notifications/release';
import { startKeeper, type Keeper } from '../../dispatcher/keeper';
import { describeOperatorEvent } from '../../domain/operator-event';
import { createHealthMetrics } from '../telemetry/health-metrics';
import { inPatience } from '../patience';

export interface WorkerKeeperOptions {
  readonly db: Db;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly everyMs: number;
}

/** The keeper of a worker process, with its metrics and its lines in the log. */
export function startWorkerKeeper({ db, logger, registry, everyMs }: WorkerKeeperOptions): Keeper {
  const metrics = createHealthMetrics(registry, () => healthFigures(db));
  return startKeeper({
    lanesToHold: () => inPatience(lanesToHold(db), 'keeper'),
    hold: (lane, limit) =>
      inPatience(holdPending(db, lane, { limit, testEventType: TEST_EVENT_TYPE }), 'keeper'),
    lanesToRelease: () => inPatience(lanesToRelease(db), 'keeper'),
    release: (lane, limit) => inPatience(releaseHeld(db, lane, { limit }), 'keeper'),
    expire: (limit) => inPatience(expireHeld(db, { limit }), 'keeper'),
    warn: () => inPatience(warnOfExpiry(db), 'keeper'),
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
