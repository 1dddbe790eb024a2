import { applicationEventText } from '../contracts/webhook-event';
import { applyOverdueEvents, overdueApplications } from '../db/applications/lender-events';
import { describeOperatorEvent } from '../domain/operator-event';
import { inRound, startLoop, type Loop } from '../timing/timing';
import type { WorkerLoopOptions } from './keeper';

/** Applications in one round. Each is a transaction of some milliseconds. */
const PER_ROUND = 200;

/**
 * Applies lender events whose wait for the steps before them is over. The lock of the application's row
 * keeps workers apart.
 */
export function startWorkerOverdueEvents({ db, logger, metrics, everyMs }: WorkerLoopOptions): Loop {
  async function round(stopped: () => boolean): Promise<'again' | void> {
    let applied = 0;
    for (const applicationId of await inRound(overdueApplications(db, PER_ROUND))) {
      if (stopped()) break;
      // An application whose event cannot be applied must not delay the others.
      try {
        const events = await inRound(applyOverdueEvents(db, applicationId, applicationEventText));
        if (events.length > 0) applied += 1;
        for (const { kind, partnerId, environment, details } of events) {
          if (kind === 'lender_steps_missing') metrics.lenderStepsMissing.inc();
          logger.warn({ kind, partnerId, environment, ...details }, describeOperatorEvent(kind, details));
        }
      } catch (error) {
        logger.warn({ err: error }, `overdue lender events of ${applicationId} could not be applied`);
      }
    }
    if (applied === PER_ROUND) return 'again';
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => logger.warn({ err: error }, 'overdue lender events could not be read'),
  });
}
