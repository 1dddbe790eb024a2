import { isDataFault } from '../db/refused';

/** A row that is refused so often, while others are opened, is to blame itself. */
const TIMES = 3;
/** Most rows that are remembered. More at once are no fault of one row. */
const REMEMBERED = 1_000;

export type Refusals = ReturnType<typeof watchRefusals>;

/**
 * Tells a row whose values Postgres refuses from a fault of ours that meets all rows. A forged row would
 * fail for ever, and keep a slot of its endpoint.
 * @param onRefused counts them: unless one ends as poison, it is tried again, and somebody must look
 */
export function watchRefusals(onRefused: () => void) {
  const refused = new Map<string, { times: number; readonly openedBefore: number }>();
  let opened = 0;
  return {
    opened: (notificationId: string): void => {
      opened += 1;
      refused.delete(notificationId);
    },
    /** @returns whether it is to end as poison; false also for any other error */
    isPoison: (notificationId: string, error: unknown): boolean => {
      if (!isDataFault(error)) return false;
      onRefused();
      const known = refused.get(notificationId) ?? { times: 0, openedBefore: opened };
      known.times += 1;
      if (refused.size < REMEMBERED) refused.set(notificationId, known);
      if (known.times < TIMES || opened === known.openedBefore) return false;
      refused.delete(notificationId);
      return true;
    },
  };
}
