import type { OperatorEvent } from '../db/audit/operator-events';
import { startLoop, type Loop } from '../timing/loop';

/** Applications of one round; each is a transaction of some milliseconds. */
const PER_ROUND = 200;

interface OverdueEventsDeps {
  /** Applications for which the wait of an event is over. */
  readonly overdue: (limit: number) => Promise<readonly string[]>;
  readonly apply: (applicationId: string) => Promise<OperatorEvent | null>;
  readonly onEvent: (event: OperatorEvent) => void;
  readonly onError: (error: unknown, what: string) => void;
  readonly everyMs: number;
}

/**
 * Applies lenders' events whose wait for the steps before them is over. Every worker runs one; the lock of the
 * application's row lets one of them apply each. It needs no Temporal.
 */
export function startOverdueEvents(deps: OverdueEventsDeps): Loop {
  const { onError, everyMs } = deps;
  async function round(stopped: () => boolean): Promise<'again' | void> {
    let applied = 0;
    for (const applicationId of await deps.overdue(PER_ROUND)) {
      if (stopped()) break;
      // An application whose event cannot be applied must not hold up the others.
      try {
        const event = await deps.apply(applicationId);
        if (event === null) continue;
        applied += 1;
        deps.onEvent(event);
      } catch (error) {
        onError(error, `overdue lender events of ${applicationId} could not be applied`);
      }
    }
    if (applied === PER_ROUND) return 'again';
  }

  return startLoop({
    round,
    everyMs,
    onError: (error) => onError(error, 'overdue lender events cannot be read for now'),
  });
}
