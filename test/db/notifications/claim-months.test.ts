import { claimDue, FIRST_TURN } from '../../../db/notifications/claim';
import { createPartner } from '../../../db/catalogue/partners';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, inState, newKeyRingText, storeStatus } from '../../support/notifications';

const partnerId = 'P100001';
let database: OpenTestDatabase;

beforeAll(async () => {
  database = await openTestDatabase();
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId, url: 'https://hook.example/x', keyRing: newKeyRingText() });
});
beforeEach(() => database.sql`truncate notifications`);
afterAll(() => database.close());

async function claim(everyMonth: boolean) {
  const options = { limit: 64, slots: 16, leaseMs: 60_000, turn: FIRST_TURN, everyMonth };
  const { claimed, ...rest } = await claimDue(database.db, options);
  return { ids: claimed.map(({ notificationId }) => notificationId), ...rest };
}
const store = async (of: { applicationId?: string; sequence?: number } = {}) =>
  (await storeStatus(database, { partnerId, ...of })).notificationId;

/** As if it had been stored on the last day of the month before last. @returns its new id. */
async function makeOld(notificationId: string): Promise<string> {
  const [row] = await database.sql<{ id: string }[]>`
    update notifications set notification_id = 'ntf_' || substr(ulid_floor(
      (date_trunc('month', service_now() at time zone 'UTC') - interval '1 month 1 day') at time zone 'UTC'), 1, 10)
      || substr(notification_id, 15)
    where notification_id = ${notificationId} returning notification_id as id`;
  return row?.id ?? '';
}

it('leaves what is of an older month to a claim that looks at every month, which says so', async () => {
  const old = await makeOld(await store());
  const recent = await store();
  expect(await claim(false)).toMatchObject({ ids: [recent], waiting: false, older: false });
  expect(await claim(true)).toMatchObject({ ids: [old], older: true });
});

it('sends no event before an earlier one that has been held since the month before last', async () => {
  const applicationId = 'app_A';
  const held = await makeOld(await store({ applicationId, sequence: 1 }));
  await database.sql`
    update notifications set ${database.sql(inState('held'))} where notification_id = ${held}`;
  const later = await store({ applicationId, sequence: 2 });
  expect((await claim(false)).ids).toEqual([]);
  await database.sql`
    update notifications set ${database.sql(inState('expired'))} where notification_id = ${held}`;
  expect((await claim(false)).ids).toEqual([later]);
});
