import { ulid } from 'ulid';
import { until } from '../../testbed/until';
import { standingOf, storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';

/** Rows that somebody has written past the checks, or that an older schema let in. */

const service = useWorkers();
const { database } = service;
let partnerId: string;

beforeAll(async () => {
  partnerId = await service.newPartner();
  await database.sql`alter table deliveries drop constraint if exists deliveries_counts`;
  await database.sql`alter table deliveries disable trigger deliveries_generation`;
  await service.start({ RECONCILE_AFTER_MS: '2000' });
}, 300_000);

const store = () => storeStatus(database, { partnerId });
const endOf = async (id: string) => {
  const { state, reason } = await standingOf(database, id);
  return { state, reason };
};
const POISON = { state: 'failed', reason: 'poison' };

/** Stores genuine events until something holds: all of them are delivered. */
async function whileOthersGoOut(check: () => Promise<boolean>, what: string): Promise<void> {
  const others: string[] = [];
  const deliver = async () => {
    const { notificationId } = await store();
    others.push(notificationId);
    await until(async () => (await endOf(notificationId)).state === 'delivered', 'a genuine event', 30_000);
    return check();
  };
  await until(deliver, what, 60_000, 250);
  for (const id of others) expect(await endOf(id)).toEqual({ state: 'delivered', reason: null });
}

test.each([
  ['the next attempt would overflow', 'attempts = 2147483647', 'queued'],
  ['the next generation would overflow', 'generation = 2147483647', 'started'],
])(
  'a row of which %s ends as poison, and others are delivered',
  async (_, forged, state) => {
    const { notificationId } = await database.db.transaction(async (tx) => {
      const stored = await storeStatus({ db: tx }, { partnerId });
      await tx.execute(
        `update deliveries set ${forged}, state = '${state}' where notification_id = '${stored.notificationId}'`,
      );
      return stored;
    });
    await whileOthersGoOut(async () => (await endOf(notificationId)).state === 'failed', 'its end');
    expect(await endOf(notificationId)).toEqual(POISON);
  },
  120_000,
);

test('a row without a notification is named and removed, and the claims of others go on', async () => {
  const notificationId = `ntf_${ulid()}`;
  const [first] = await Promise.all([
    store(),
    database.sql`
    insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test)
    values (${notificationId}, ${partnerId}, 'sandbox', ${`app_${ulid()}`}, 1, false)`,
  ]);
  const gone = async () =>
    (await database.sql`select 1 from deliveries where notification_id = ${notificationId}`).length === 0;
  await whileOthersGoOut(gone, 'it is removed');
  await until(async () => (await endOf(first.notificationId)).state === 'delivered', 'the event beside it');
  const [worker] = service.workers;
  const lines = worker?.logs.filter((line) => line.includes(notificationId)) ?? [];
  expect(lines.some((line) => line.includes('poison'))).toBe(true);
  expect(worker?.logs.filter((line) => line.includes('cannot reach Postgres'))).toEqual([]);
});
