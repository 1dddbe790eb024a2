import { ulid } from 'ulid';
import { testEvent } from '../../contracts/webhook-event';
import { EVENT_FIELDS } from '../../contracts/signable-event';
import { insertTestNotification } from '../../db/notifications/create';
import { resendNotification } from '../../db/notifications/resend';
import type { Database } from '../../db/postgres/connect';
import { TEST_EVENT_TYPE } from '../../domain/notification-states';
import { openDatabaseAt } from '../support/database';
import { comesTo, standingOf, storeStatus } from '../../testbed/notifications';
import { asRole } from '../../testbed/roles';
import { useWorkers } from '../support/service';

/** Whoever has the API's login stores bodies; workers sign those that they know (test/contracts/webhook-event.test.ts). */
const service = useWorkers();
const { database, receiver } = service;
const v1 = EVENT_FIELDS['v1'];
if (v1 === undefined) throw new Error('no v1');
let api: Database;
let partnerId: string;

beforeAll(async () => {
  partnerId = await service.newPartner();
  api = openDatabaseAt(asRole(database.url, 'api'));
  await service.start({ DELIVERY_LADDER_SECONDS: '0,3600', TEST_LADDER_SECONDS: '0,3600' });
}, 300_000);
afterAll(() => api?.close());
beforeEach(() => void (receiver.received.length = 0));

/** Stores a test with the API's login. @param change what its body is, by the one that we would have written */
async function store(change: (body: string) => string): Promise<{ notificationId: string; body: string }> {
  const [notificationId, eventId] = [`ntf_${ulid()}`, `evt_${ulid()}`];
  const environment = 'sandbox';
  const genuine = JSON.stringify(testEvent({ eventId, environment, createdAt: new Date(), lender: null }));
  const body = change(genuine);
  const about = { notificationId, eventId, partnerId, environment, eventType: TEST_EVENT_TYPE } as const;
  await insertTestNotification(api.db, { ...about, body, requestId: 'rq_forged' });
  return { notificationId, body };
}

describe('a field that the next release writes', () => {
  const added = { ...v1.added };
  afterEach(() => {
    for (const name of Object.keys(v1.added)) if (!(name in added)) Reflect.deleteProperty(v1.added, name);
  });
  const withField = (body: string) => body.replace(/\}\}$/, ',"instalments":12}}');

  test('is signed by workers that know it, and by no others; a body without it is sent again', async () => {
    const { notificationId: older } = await storeStatus(database, { partnerId });
    await comesTo(database, older, 'delivered');
    // A worker of today, beside an API of the release after the next.
    const { notificationId: early } = await store(withField);
    await comesTo(database, early, 'failed');
    expect(await standingOf(database, early)).toMatchObject({ reason: 'poison' });

    // The next release knows the field. APIs of today, which do not write it, run beside that of the release after it, which does.
    Object.assign(v1.added, { instalments: Number.isSafeInteger });
    const [without, newer] = [await store((body) => body), await store(withField)];
    for (const { notificationId } of [without, newer]) await comesTo(database, notificationId, 'delivered');
    // What was refused before the roll-out was complete, and what an older release stored and delivered.
    await database.db.transaction((tx) => resendNotification(tx, older));
    await comesTo(database, older, 'delivered');
    expect(await standingOf(database, older)).toMatchObject({ generation: 2, delivered: true });
    const [first, ...rest] = receiver.received.map(({ body }) => body);
    expect(rest.slice(0, 2).toSorted()).toEqual([without.body, newer.body].toSorted());
    expect(rest.slice(2)).toEqual([first]);
  });
});
