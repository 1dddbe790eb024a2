import { restartNotification } from '../../../db/notifications/claim';
import {
  forgetAttempt,
  openAttempt,
  endNotification,
  recordAttempt,
} from '../../../db/notifications/attempt';
import { createPartner } from '../../../db/catalogue/partners';
import { resendNotification } from '../../../db/notifications/resend';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, setServiceClock, storeTest } from '../../support/notifications';
import { FAILED } from '../../support/outcomes';

let database: OpenTestDatabase;
const partnerId = 'P100001';

beforeAll(async () => {
  database = await openTestDatabase();
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing: newKeyRingText() });
});

afterEach(() => setServiceClock(database, null));

afterAll(() => database.close());

const first = async (notificationId: string) => {
  const [row] = await database.sql`
    select (first_attempt_at at time zone 'UTC')::text as at, taken_at is not null as taken
    from notifications_now where notification_id = ${notificationId}`;
  return row;
};

async function attempt(notificationId: string, generation: number, at: string): Promise<void> {
  await setServiceClock(database, at);
  const opened = await openAttempt(database.db, { notificationId, generation });
  if (opened.kind !== 'open') throw new Error(opened.kind);
  const { attemptNumber } = opened;
  await recordAttempt(
    database.db,
    { notificationId, attemptNumber },
    { outcome: FAILED, address: null },
    null,
  );
}

const take = (notificationId: string) =>
  database.sql`update deliveries set taken_at = service_now() where notification_id = ${notificationId}`;

it('keeps the start of the first attempt through later ones, and gives up the place with its end', async () => {
  const { notificationId } = await storeTest(database, { partnerId });
  await take(notificationId);
  expect(await first(notificationId)).toEqual({ at: null, taken: true });
  await attempt(notificationId, 1, '2027-03-01T10:00:00Z');
  expect(await first(notificationId)).toEqual({ at: '2027-03-01 10:00:00', taken: false });
  await attempt(notificationId, 1, '2027-03-01T10:01:00Z');
  expect(await first(notificationId)).toEqual({ at: '2027-03-01 10:00:00', taken: false });
});

it('is none when it could not be signed, and counts from the one that is sent', async () => {
  const { notificationId } = await storeTest(database, { partnerId });
  await setServiceClock(database, '2027-03-01T10:00:00Z');
  await openAttempt(database.db, { notificationId, generation: 1 });
  await forgetAttempt(database.db, { notificationId, attemptNumber: 1 });
  expect(await first(notificationId)).toMatchObject({ at: null });
  await attempt(notificationId, 1, '2027-03-01T10:01:00Z');
  await openAttempt(database.db, { notificationId, generation: 1 });
  await forgetAttempt(database.db, { notificationId, attemptNumber: 2 });
  expect(await first(notificationId)).toMatchObject({ at: '2027-03-01 10:01:00' });
});

it('begins anew when it is sent again, and stands when its workflow is replaced', async () => {
  const { notificationId } = await storeTest(database, { partnerId });
  await attempt(notificationId, 1, '2027-03-01T10:00:00Z');
  await endNotification(
    database.db,
    { notificationId, generation: 1 },
    { state: 'failed', reason: 'exhausted' },
  );
  await database.db.transaction((tx) => resendNotification(tx, notificationId));
  expect(await first(notificationId)).toEqual({ at: null, taken: false });

  await attempt(notificationId, 2, '2027-03-02T10:00:00Z');
  await take(notificationId);
  const [row] =
    await database.sql`select state from notifications_now where notification_id = ${notificationId}`;
  expect(row).toEqual({ state: 'started' });
  await restartNotification(database.db, { notificationId, generation: 2 });
  expect(await first(notificationId)).toEqual({ at: '2027-03-02 10:00:00', taken: false });
});
