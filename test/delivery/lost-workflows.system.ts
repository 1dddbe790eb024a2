import { deliveryFigures } from '../../db/figures';
import { until } from '../../testbed/until';
import { storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';

const service = useWorkers();
const { database } = service;
const LOST = 150;

/** What `ops status` counts, how many wait under a new generation, and the events of a loss. */
async function standing() {
  const { toRestart } = await deliveryFigures(database.db);
  const [row] = await database.sql<{ restarted: number; noted: number }[]>`
    select (select count(*) from deliveries where generation = 2 and checked_at > started_at)::int as restarted,
      (select count(*) from operator_events where kind = 'workflows_lost')::int as noted`;
  return { toRestart, restarted: row?.restarted, noted: row?.noted };
}

test('what waits to be started again after a loss of Temporal is counted, until nothing waits', async () => {
  const partnerId = await service.newPartner();
  for (let stored = 0; stored < LOST; stored += 1) await storeStatus(database, { partnerId });
  // As a lost Temporal leaves them: their workflows waited for the next attempt.
  await database.sql`
    update deliveries set state = 'started', step = 1, attempts = 1, next_attempt_at = service_now() + interval '1 day',
      started_at = service_now() - interval '1 hour', checked_at = service_now() - interval '10 minutes'`;
  expect(await standing()).toEqual({ toRestart: 0, restarted: 0, noted: 0 });
  await service.start({ RECONCILE_AFTER_MS: '2000' });
  const seen: number[] = [];
  const repaired = async () => {
    const { toRestart, restarted } = await standing();
    seen.push(toRestart);
    return restarted === LOST && toRestart === 0;
  };
  await until(repaired, 'all wait under a new generation', 60_000, 50);
  expect(Math.max(...seen)).toBeGreaterThan(LOST / 2);
  expect(await standing()).toEqual({ toRestart: 0, restarted: LOST, noted: 1 });
  // Temporal loses those too: it has no third generation of them.
  await database.sql`update deliveries set generation = 3`;
  await until(async () => (await standing()).noted === 2, 'another loss is noted');
}, 180_000);
