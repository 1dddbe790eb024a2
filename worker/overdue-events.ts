import { applicationEventText } from '../contracts/webhook-event';
import { applyOverdueEvents, overdueApplications } from '../db/applications/lender-events';
import { describeOperatorEvent } from '../domain/operator-event';
import { inRound, startLoop, type Loop } from '../timing/timing';
import type { WorkerLoopOptions } from './keeper';

/** Applications in one round. Each is a transaction of some milliseconds. */
const PER_ROUND = 200;

/** An application whose event could not be applied is passed over for this long, as enough of them would fill every round. */
const PASSED_OVER_MS = 600_000;

/**
 * Applies lender events whose wait for the steps before them is over. The lock of the application's row
 * keeps workers apart.
 */
export function startWorkerOverdueEvents({ db, logger, metrics, everyMs }: WorkerLoopOptions): Loop {
  /** Until when an application is passed over, in milliseconds of the monotonic clock. */
  const failed = new Map<string, number>();

  async function round(stopped: () => boolean): Promise<'again' | void> {
    for (const [id, untilMs] of failed) if (untilMs <= performance.now()) failed.delete(id);
    const overdue = await inRound(overdueApplications(db, PER_ROUND, [...failed.keys()]));
    let done = 0;
    for (const applicationId of overdue) {
      if (stopped()) break;
      // An application whose event cannot be applied must not delay the others.
      try {
        const events = await inRound(applyOverdueEvents(db, applicationId, applicationEventText));
        if (events.length > 0) done += 1;
        for (const { kind, partnerId, environment, details } of events) {
          if (kind === 'lender_steps_missing') metrics.lenderStepsMissing.inc();
          logger.warn({ kind, partnerId, environment, ...details }, describeOperatorEvent(kind, details));
        }
      } catch (error) {
        failed.set(applicationId, performance.now() + PASSED_OVER_MS);
        done += 1;
        logger.warn({ err: error }, `overdue lender events of ${applicationId} could not be applied`);
      }
    }
    if (done === PER_ROUND) return 'again';
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => logger.warn({ err: error }, 'overdue lender events could not be read'),
  });
}
