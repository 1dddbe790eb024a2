import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { openAttempt } from '../../../db/notifications/open-attempt';
import { openFirstAttempt } from '../../../db/notifications/open-first-attempt';
import { createPartner } from '../../../db/catalogue/partners';
import { rotateKeyPair } from '../../../db/endpoints/key-pairs';
import { rotateSecret } from '../../../db/endpoints/secrets';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import {
  addEndpoint,
  inState,
  newKeyRingText,
  setServiceClock,
  storeTest,
} from '../../support/notifications';

const PARTNER_ID = 'P100001';
const keyRing = parseKeyRing(newKeyRingText());
let database: OpenTestDatabase;
let endpointId: string;

beforeAll(async () => {
  database = await openTestDatabase({ poolSize: 10 });
  await createPartner(database.db, { partnerId: PARTNER_ID, name: 'Example' });
  ({ endpointId } = await addEndpoint(database, {
    partnerId: PARTNER_ID,
    url: 'https://hook.example/x',
    keyRing,
  }));
});
afterEach(() => setServiceClock(database, null));
afterAll(() => database.close());

async function stored() {
  const { notificationId } = await storeTest(database, { partnerId: PARTNER_ID });
  return { notificationId, generation: 1 };
}
const rowsOf = async ({ notificationId }: { notificationId: string }) => ({
  notification: (
    await database.sql`select state, attempts, started_at is not null as started, checked_at is not null as checked,
        first_attempt_at is not null as tried, taken_at is not null as taken, reserved_month
      from notifications where notification_id = ${notificationId}`
  )[0],
  attempts: [
    ...(await database.sql`select attempt_number, generation, endpoint_id, outcome
      from delivery_attempts where notification_id = ${notificationId}`),
  ],
});

test('opens what openAttempt would open, to the letter', async () => {
  const seal = (place: { endpointId: string; secretId: string }) => keyRing.seal('whsec_bmV4dA==', place);
  await database.db.transaction((tx) => rotateSecret(tx, endpointId, { overlapSeconds: 60, seal }));
  const owner = { partnerId: PARTNER_ID, environment: 'sandbox' } as const;
  await database.db.transaction((tx) => rotateKeyPair(tx, owner, { overlapSeconds: 60, keyRing }));
  const [one, other] = [await stored(), await stored()];
  const first = await openFirstAttempt(database.sql, one, endpointId);
  const usual = await openAttempt(database.db, other);
  if (first === null || usual.kind !== 'open') throw new Error('both were expected to open');
  const { notification: _one, ...rest } = first;
  const { notification: _other, ...usualRest } = usual;
  expect(usualRest).toMatchObject(rest);
  expect(rest.secrets).toHaveLength(2);
  for (const secret of rest.secrets) expect(() => keyRing.open(secret, secret)).not.toThrow();
  expect(rest.keyPairs).toHaveLength(2);
  for (const pair of rest.keyPairs) expect(keyRing.open(pair, { ...pair, ...owner })).toMatch(/^whsk_/);
  const [body] = await database.sql`select event_id as "eventId", event_type as "eventType", body,
    partner_id as "partnerId", environment from notifications where notification_id = ${one.notificationId}`;
  expect(first.notification).toMatchObject(body ?? {});
  const written = await rowsOf(one);
  expect(written).toEqual(await rowsOf(other));
  expect(written).toMatchObject({
    notification: { state: 'started', attempts: 1, started: true, checked: true, tried: true, taken: true },
    attempts: [{ attempt_number: 1, generation: 1, endpoint_id: endpointId, outcome: null }],
  });
});

test.each<[string, (ref: { notificationId: string }) => Promise<unknown>]>([
  ['has an attempt', (ref) => openAttempt(database.db, { ...ref, generation: 1 })],
  [
    'has ended',
    ({ notificationId: id }) =>
      database.sql`update notifications set ${database.sql(inState('cancelled'))} where notification_id = ${id}`,
  ],
  [
    'is of another generation',
    ({ notificationId: id }) =>
      database.sql`update notifications set generation = 2 where notification_id = ${id}`,
  ],
  [
    'has its place in another month',
    ({ notificationId: id }) =>
      database.sql`update notifications set reserved_month = '2020-01-01' where notification_id = ${id}`,
  ],
])('leaves alone what %s', async (_what, change) => {
  const ref = await stored();
  await change(ref);
  const before = await rowsOf(ref);
  expect(await openFirstAttempt(database.sql, ref, endpointId)).toBeNull();
  expect(await rowsOf(ref)).toEqual(before);
});

test('leaves alone what would go to another endpoint, or to one that is disabled', async () => {
  const ref = await stored();
  expect(await openFirstAttempt(database.sql, ref, 'whe_another')).toBeNull();
  await database.sql`update webhook_endpoints set state = 'disabled' where endpoint_id = ${endpointId}`;
  expect(await openFirstAttempt(database.sql, ref, endpointId)).toBeNull();
  await database.sql`update webhook_endpoints set state = 'active' where endpoint_id = ${endpointId}`;
  expect(await rowsOf(ref)).toMatchObject({ notification: { state: 'pending', attempts: 0 }, attempts: [] });
});

test('of many at once, one opens', async () => {
  const ref = await stored();
  const opened = await Promise.all(
    Array.from({ length: 8 }, () => openFirstAttempt(database.sql, ref, endpointId)),
  );
  expect(opened.filter((one) => one !== null)).toHaveLength(1);
  expect((await rowsOf(ref)).attempts).toHaveLength(1);
});
