import { Refused } from './refused';

/** An old key works, and an old secret or key pair signs, along with the new one for a day: time to roll the new one out. */
export const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
const LONGEST_OVERLAP_SECONDS = 7 * 24 * 3600;
/** Secrets of an endpoint, and key pairs of a partner and environment. Each adds a signature to every delivery; a fourth would mean that rotation never ends. */
export const MOST_LIVE = 3;

/** @throws Refused when an overlap is not 0 to 7 days. */
export function checkOverlap(seconds: number): void {
  if (seconds >= 0 && seconds <= LONGEST_OVERLAP_SECONDS) return;
  throw new Refused('invalid', 'The overlap must be between 0 and 7 days.');
}
