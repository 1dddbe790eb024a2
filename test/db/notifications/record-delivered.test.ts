import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { openAttempt } from '../../../db/notifications/open-attempt';
import { createPartner } from '../../../db/catalogue/partners';
import { recordAttempt } from '../../../db/notifications/record-attempt';
import { recordDelivered } from '../../../db/notifications/record-delivered';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, storeTest } from '../../support/notifications';

const RESULT = { httpStatus: 204, durationMs: 12, address: '192.0.2.1' };
const keyRing = parseKeyRing(newKeyRingText());
let database: OpenTestDatabase;
let partners = 400_000;

beforeAll(async () => {
  database = await openTestDatabase({ poolSize: 10 });
});
afterAll(() => database.close());

/** An attempt under way to an endpoint that has been well for less than a minute. */
async function underWay() {
  partners += 1;
  const partnerId = `P${partners}`;
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing });
  await database.sql`update webhook_endpoints set last_success_at = service_now() where partner_id = ${partnerId}`;
  const { notificationId } = await storeTest(database, { partnerId });
  await openAttempt(database.db, { notificationId, generation: 1 });
  return { partnerId, notificationId, attemptNumber: 1 };
}
type UnderWay = Awaited<ReturnType<typeof underWay>>;

/** All that an attempt's end writes; of moments only whether they are there. */
async function written({ partnerId, notificationId }: UnderWay) {
  const { sql } = database;
  return {
    notification: [
      ...(await sql`select state, end_reason, attempts, generation, reserved_month, failed_month,
        delivered_at is not null as delivered, ended_at is not null as ended
        from notifications where notification_id = ${notificationId}`),
    ],
    attempts: [
      ...(await sql`select attempt_number, generation, outcome, failure, http_status, duration_ms, retry_after_ms,
        address, finished_at is not null as finished
        from delivery_attempts where notification_id = ${notificationId}`),
    ],
    counts: [
      ...(await sql`select month::text, event_type, delivered, failed, reserved
        from monthly_counts where partner_id = ${partnerId}`),
    ],
  };
}
const delivered = (attempt: UnderWay) => recordDelivered(database.sql, attempt, RESULT);
const usually = (attempt: UnderWay) =>
  recordAttempt(
    database.db,
    attempt,
    { outcome: { kind: 'delivered', ...RESULT }, address: RESULT.address },
    null,
  );

test.each([
  ['a test, which holds a place in the month', true],
  ['any other event', false],
])('writes what recordAttempt would, for %s', async (_what, holds) => {
  const [one, other] = [await underWay(), await underWay()];
  if (!holds) {
    for (const { notificationId } of [one, other])
      await database.sql`update notifications set reserved_month = null where notification_id = ${notificationId}`;
    await database.sql`delete from monthly_counts`;
  }
  expect(await delivered(one)).toBe(true);
  await usually(other);
  const now = await written(one);
  expect(now).toEqual(await written(other));
  expect(now).toMatchObject({
    notification: [{ state: 'delivered', delivered: true, ended: true, reserved_month: null }],
    attempts: [{ outcome: 'delivered', http_status: 204, finished: true }],
    counts: [{ delivered: 1, failed: 0, reserved: 0 }],
  });
});

test.each<[string, (attempt: UnderWay) => Promise<unknown>]>([
  ['has been recorded', delivered],
  [
    'was closed as unknown',
    ({ notificationId }) => openAttempt(database.db, { notificationId, generation: 1 }),
  ],
  [
    'ended its endpoint being well',
    ({ partnerId }) =>
      database.sql`update webhook_endpoints set failing_since = service_now() where partner_id = ${partnerId}`,
  ],
  [
    'is of an older generation',
    ({ notificationId: id }) =>
      database.sql`update notifications set generation = 2 where notification_id = ${id}`,
  ],
  [
    'was counted as failed',
    ({ notificationId: id }) =>
      database.sql`update notifications set failed_month = '2026-11-01' where notification_id = ${id}`,
  ],
  [
    'has its place in another month',
    ({ notificationId: id }) =>
      database.sql`update notifications set reserved_month = '2020-01-01' where notification_id = ${id}`,
  ],
])('leaves alone what %s', async (_what, change) => {
  const attempt = await underWay();
  await change(attempt);
  const before = await written(attempt);
  expect(await delivered(attempt)).toBe(false);
  expect(await written(attempt)).toEqual(before);
});

test('of many at once, in either way, one counts', async () => {
  const attempt = await underWay();
  const all = await Promise.all([
    ...Array.from({ length: 6 }, () => delivered(attempt)),
    ...Array.from({ length: 3 }, () => usually(attempt).then(() => false)),
  ]);
  expect(all.filter((one) => one).length).toBeLessThanOrEqual(1);
  expect((await written(attempt)).counts).toMatchObject([{ delivered: 1, reserved: 0 }]);
});

test('whoever waits for a test is told', async () => {
  const attempt = await underWay();
  const heard: string[] = [];
  const listening = await database.sql.listen('attempts', (payload) => heard.push(payload));
  await delivered(attempt);
  while (!heard.includes(attempt.notificationId)) await new Promise((resolve) => setTimeout(resolve, 5));
  await listening.unlisten();
});
