import { TEST_EVENT_TYPE } from '../../../domain/notification-states';
import { createPartner } from '../../../db/catalogue/partners';
import { deliveryFigures } from '../../../db/figures';
import { endNotification } from '../../../db/notifications/attempt';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, putInState, newKeyRingText, storeStatus, storeTest } from '../../support/notifications';

const partnerId = 'P100001';
let database: OpenTestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing: newKeyRingText() });
});
afterAll(() => database.close());

const figures = () => deliveryFigures(database.db);

test('how long the oldest pause has lasted is shown, and nothing of deliveries that go on', async () => {
  const ids = [];
  for (let nth = 0; nth < 3; nth += 1) {
    const { notificationId } = await storeStatus(database, { partnerId, sequence: nth + 1 });
    await putInState(database, notificationId, 'started');
    ids.push(notificationId);
  }
  expect(await figures()).toMatchObject({ undelivered: { started: 3 }, oldestPausedMs: 0 });
  const [longest = '', shorter = ''] = ids;
  for (const [id, hours] of [
    [longest, 25],
    [shorter, 1],
  ] as const)
    await database.sql`
      update deliveries set paused_at = service_now() - make_interval(hours => ${hours}), next_attempt_at = null
      where notification_id = ${id}`;
  const { oldestPausedMs } = await figures();
  expect(oldestPausedMs).toBeGreaterThanOrEqual(25 * 3_600_000);
  expect(oldestPausedMs).toBeLessThan(26 * 3_600_000);
});

test('the end of a notification says of which event it was, once, so that failed tests are told from lost events', async () => {
  const end = { state: 'failed', reason: 'exhausted' } as const;
  const start = (id: string) => putInState(database, id, 'started');
  const test = await storeTest(database, { partnerId });
  await start(test.notificationId);
  const ref = { notificationId: test.notificationId, generation: 1 };
  expect(await endNotification(database.db, ref, end)).toBe(TEST_EVENT_TYPE);
  expect(await endNotification(database.db, ref, end)).toBeNull();
  const status = await storeStatus(database, { partnerId, sequence: 9 });
  await start(status.notificationId);
  const other = { notificationId: status.notificationId, generation: 1 };
  expect(await endNotification(database.db, { ...other, generation: 2 }, end)).toBeNull();
  expect(await endNotification(database.db, other, end)).toMatch(/^credit_application\.(?!test)/);
});
