import { until } from '../../testbed/until';
import { freePort } from '../../dev/ports';
import { storeStatus } from '../../testbed/notifications';
import { despiteDeadlocks } from '../support/database';
import { useWorkers } from '../support/service';
import { localTargets } from '../support/webhook-receiver';

const service = useWorkers();
const { database, newPartner } = service;
const SLOTS = 16;
let closedPort: number;

beforeAll(async () => {
  closedPort = await freePort();
}, 300_000);

afterEach(async () => {
  await cancelBacklog();
  await service.stop();
  await database.sql`truncate notifications, deliveries, delivery_attempts`;
  service.receiver.reset();
});

/** What is left of a backlog is nobody's any more. */
const cancelBacklog = () =>
  despiteDeadlocks(
    () => database.sql`
      with gone as (delete from deliveries returning notification_id, generation, attempts)
      update notifications n set end_state = 'cancelled', end_reason = 'operator', ended_at = service_now(),
        generation = gone.generation, attempts = gone.attempts
      from gone where n.notification_id = gone.notification_id`,
  );

const startWorker = () =>
  service.start({ WEBHOOK_LOCAL_TARGETS: localTargets(service.receiver.port, closedPort) });

/** Stores so many, each of an application of its own. @returns their event ids */
async function storeMany(partnerId: string, count: number): Promise<ReadonlySet<string>> {
  const storing = Array.from({ length: count }, () => storeStatus(database, { partnerId }));
  return new Set((await Promise.all(storing)).map(({ eventId }) => eventId));
}

const arrivalOf = (id: string) => service.receiver.received.find(({ eventId }) => eventId === id);
const countState = async (partnerId: string, state: string) => {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::int from notifications_now where partner_id = ${partnerId} and state = ${state}`;
  return row?.count ?? 0;
};

/** One notification to each of some other partners, one after the other. @returns commit to received, in milliseconds */
async function sendOthers(count: number): Promise<number[]> {
  const partnerId = await newPartner();
  const took: number[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const { eventId } = await storeStatus(database, { partnerId });
    const storedMs = performance.now();
    await until(() => arrivalOf(eventId) !== undefined, 'the delivery of another partner', 14_000);
    took.push((arrivalOf(eventId)?.atMs ?? 0) - storedMs);
  }
  return took.toSorted((a, b) => a - b);
}

test('500 due to a host that is dead do not keep another partner waiting', async () => {
  const dead = await newPartner(
    service.receiver.url.replace(String(service.receiver.port), String(closedPort)),
  );
  await storeMany(dead, 500);
  await startWorker();
  await until(async () => (await countState(dead, 'started')) > SLOTS, 'attempts that fail');
  const took = await sendOthers(5);
  expect(took[2]).toBeLessThan(2_000);
  expect(await countState(dead, 'delivered')).toBe(0);
});
