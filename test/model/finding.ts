import type { Database } from '../../db/postgres/connect';
import type { Finding } from '../storm/finding';
import { checkTrace } from './trace';

/** Every transition of every delivery of a run, held against the model. Optional where nothing was kept. */
export async function accordingToModel({ sql }: Pick<Database, 'sql'>): Promise<Finding> {
  const { deliveries, transitions, refused } = await checkTrace(sql);
  return {
    invariant: '    every transition of every delivery is one of the model',
    looked: transitions,
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
