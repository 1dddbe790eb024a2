import type { Finding } from '../../storm/finding';
import { check, type Line } from './trace';

/** Every transition of every delivery of a run, held against the model. */
export function accordingToModel(lines: readonly Line[]): Finding {
  const { deliveries, transitions, refused } = check(lines);
  return {
    invariant: '    every transition of every delivery is one of the model',
    looked: transitions,
    // A scene may have only rows that the test has put there itself.
    optional: true,
    seen: `${transitions} transitions of ${deliveries} deliveries`,
    offenders:
      refused === null
        ? []
        : [
            `${refused.notification} after ${refused.before.join(', ')}: ${refused.why}, in ${JSON.stringify(refused.state)}`,
          ],
  };
}
