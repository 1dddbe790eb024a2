/** An endpoint is given up after failing this long … */
const DISABLE_AFTER_HOURS = 120;
/** … and this often: a handful of failures says nothing about an endpoint that is seldom sent to. */
const DISABLE_AFTER_FAILURES = 20;
/** Operators are warned when it has failed for so long. */
export const WARN_AFTER_HOURS = [24, 48, 96] as const;

/**
 * What a failure means for its endpoint: give it up, warn of the longest of the times reached, or neither.
 * @param endpoint what is known of it, this failure included: `hours` since the first failure after the last success, and
 *   the `warnedHours` that operators have been warned of (0: not yet).
 */
export function judgeFailing(endpoint: {
  readonly hours: number;
  readonly failures: number;
  readonly warnedHours: number;
}): { readonly kind: 'disable' } | { readonly kind: 'warn'; readonly hours: number } | null {
  const { hours, failures, warnedHours } = endpoint;
  if (hours >= DISABLE_AFTER_HOURS && failures >= DISABLE_AFTER_FAILURES) return { kind: 'disable' };
  const reached = WARN_AFTER_HOURS.findLast((each) => hours >= each) ?? 0;
  return reached > warnedHours ? { kind: 'warn', hours: reached } : null;
}
