import type { Logger } from 'pino';
import type { OperatorEvent } from '../db/audit/operator-events';
import type { Db } from '../db/postgres/connect';
import {
  expireHeld,
  warnOfExpiry,
  holdQueued,
  queuesToHold,
  queuesToRelease,
  releaseHeld,
} from '../db/notifications/hold';
import { describeOperatorEvent } from '../domain/operator-event';
import type { Tenant } from '../domain/tenant';
import { inRound, startLoop, type Loop } from '../timing/timing';
import type { WorkerMetrics } from './events';

/** Notifications moved in one transaction, which locks their rows for some tens of milliseconds. */
const BATCH = 200;
/** The search reads every notification that is about to expire. An operator is warned once a day. */
const WARN_EVERY_MS = 300_000;

export interface WorkerLoopOptions {
  readonly db: Db;
  readonly logger: Logger;
  readonly metrics: WorkerMetrics;
  readonly everyMs: number;
}

/**
 * Holds notifications without an endpoint, releases them in sequence, and expires them. Row locks keep
 * workers apart.
 */
export function startWorkerKeeper({ db, logger, metrics, everyMs }: WorkerLoopOptions): Loop {
  let warnedAtMs = Number.NEGATIVE_INFINITY;

  async function round(stopped: () => boolean): Promise<void> {
    const limit = BATCH;
    await move('held', await inRound(queuesToHold(db)), (queue) => holdQueued(db, queue, { limit }), stopped);
    const released = await inRound(queuesToRelease(db));
    await move('released', released, (queue) => releaseHeld(db, queue, { limit }), stopped);
    for (let more = true; more && !stopped();) {
      const expired = await inRound(expireHeld(db, { limit }));
      expired.forEach(report);
      more = expired.length > 0;
    }
    if (stopped() || performance.now() - warnedAtMs < WARN_EVERY_MS) return;
    (await inRound(warnOfExpiry(db))).forEach(report);
    warnedAtMs = performance.now();
  }

  /** Moves a batch of each queue in turn, so that one partner's backlog does not delay another's. */
  async function move(
    what: 'held' | 'released',
    queues: readonly Tenant[],
    one: (queue: Tenant) => Promise<number>,
    stopped: () => boolean,
  ): Promise<void> {
    const totals = new Map<Tenant, number>();
    try {
      for (let left = queues; left.length > 0;) {
        const full: Tenant[] = [];
        for (const queue of left) {
          if (stopped()) return;
          const count = await inRound(one(queue));
          if (count > 0) totals.set(queue, (totals.get(queue) ?? 0) + count);
          if (count === BATCH) full.push(queue);
        }
        left = full;
      }
    } finally {
      for (const [{ partnerId, environment }, count] of totals) {
        if (what === 'released') metrics.heldReleased.inc(count);
        logger.info({ partnerId, environment, count }, `notifications were ${what}`);
      }
    }
  }

  function report({ kind, partnerId, environment, endpointId, details }: OperatorEvent): void {
    if (kind === 'notifications_expired') metrics.heldExpired.inc(Number(details['count']));
    const message = describeOperatorEvent(kind, details);
    logger.warn({ kind, partnerId, environment, endpointId, ...details }, message);
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => logger.warn({ err: error }, 'held notifications could not be released or expired'),
  });
}
