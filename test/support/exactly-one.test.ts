import { createPartner } from '../../db/catalogue/partners';
import { openTestDatabase, type OpenTestDatabase } from './database';
import { contradictions, expectExactlyOne } from './exactly-one';
import { addEndpoint, newKeyRingText, putInState, storeStatus } from './notifications';

const partnerId = 'P100001';
let database: OpenTestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing: newKeyRingText() });
});
afterEach(() => database.sql`truncate notifications, deliveries`);
afterAll(() => database.close());

const store = async () => (await storeStatus(database, { partnerId })).notificationId;

test('nothing is found among notifications in every state', async () => {
  for (const state of ['queued', 'started', 'held', 'delivered', 'failed', 'cancelled', 'expired'] as const)
    await putInState(database, await store(), state);
  await expectExactlyOne(database);
});

test.each<[string, (id: string) => PromiseLike<unknown>]>([
  [
    'both',
    (id) =>
      database.sql`update notifications set end_state = 'failed', end_reason = 'x', ended_at = now() where notification_id = ${id}`,
  ],
  ['neither', (id) => database.sql`delete from deliveries where notification_id = ${id}`],
  ['no notification', (id) => database.sql`delete from notifications where notification_id = ${id}`],
  [
    'another tenant or application',
    (id) => database.sql`update deliveries set environment = 'live' where notification_id = ${id}`,
  ],
])('%s is found', async (what, plant) => {
  const [id] = [await store(), await store()];
  await plant(id);
  expect(await contradictions(database)).toEqual([{ id, what }]);
  await expect(expectExactlyOne(database)).rejects.toThrow(`${id}: ${what}`);
});
