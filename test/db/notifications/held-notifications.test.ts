import type { Tenant } from '../../../domain/tenant';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import {
  expireHeld,
  warnOfExpiry,
  holdQueued,
  queuesToHold,
  queuesToRelease,
  releaseHeld,
} from '../../../db/notifications/hold';
import { healthFigures } from '../../../db/figures';
import { openAttempt, endNotification, recordAttempt } from '../../../db/notifications/attempt';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import { openApplication } from '../../support/applications';
import { emptyNotifications, useDatabase } from '../../support/database';
import {
  addEndpoint,
  newKeyRingText,
  newPartner,
  openedAttempt,
  putInState,
  setServiceClock,
  storeMany,
  storeStatus,
  storeTest,
} from '../../../testbed/notifications';
import { DELIVERED, FAILED } from '../../../testbed/values';

const keyRing = parseKeyRing(newKeyRingText());
const database = useDatabase({ poolSize: 12 });
let queue: Tenant;
let endpointId: string;

beforeEach(async () => {
  await emptyNotifications(database);
  queue = await newQueue();
});
afterEach(() => setServiceClock(database, null));
async function newQueue(): Promise<Tenant> {
  const { partnerId, endpointId: id } = await newPartner(database, keyRing);
  endpointId = id;
  return { partnerId, environment: 'sandbox' };
}

const set = (state: 'active' | 'disabled') =>
  database.db.transaction((tx) =>
    setEndpointState(tx, endpointId, state === 'active' ? { state } : { state, reason: 'operator' }),
  );
const hold = (limit = 500) => holdQueued(database.db, queue, { limit });
const holdAll = () => set('disabled').then(() => hold());
const release = (limit = 500) => releaseHeld(database.db, queue, { limit });
const store = (times = 1) =>
  storeMany(times, (nth) => storeStatus(database, { ...queue, applicationId: 'app_1', sequence: nth + 1 }));
const rows = () => database.sql`
  select state, generation, end_reason as reason, held_at is not null as since, count(*)::int as count
  from notifications_now where partner_id = ${queue.partnerId} group by 1, 2, 3, 4 order by 1, 2`;
const counts = () => database.sql`
  select event_type as type, delivered, failed, reserved from monthly_counts where partner_id = ${queue.partnerId}`;

describe('holding', () => {
  test('takes what is pending for a partner without an active endpoint, and leaves tests to fail', async () => {
    await store(5);
    await storeTest(database, queue);
    expect(await queuesToHold(database.db)).toEqual([]);
    expect(await hold()).toBe(0);
    await set('disabled');
    expect(await queuesToHold(database.db)).toEqual([queue]);
    expect([await hold(3), await hold(3), await hold(3)]).toEqual([3, 2, 0]);
    expect(await rows()).toEqual([
      { state: 'held', generation: 1, reason: 'endpoint_disabled', since: true, count: 5 },
      { state: 'queued', generation: 1, reason: null, since: false, count: 1 },
    ]);
  });

  test('leaps over the queues of others, however many wait there', async () => {
    const queues: Tenant[] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      if (nth > 0) queue = await newQueue();
      queues.push(queue);
      await store(3);
      if (nth % 2 === 0) await set('disabled');
    }
    expect(await queuesToHold(database.db)).toEqual([queues[0], queues[2]]);
  });

  test('a new notification is held without an endpoint, and queued with one', async () => {
    const birth = async (wanted: Tenant) => {
      const { applicationId } = await openApplication(database, wanted);
      const [row] = await database.sql`
        select state, end_reason as reason, held_at is not null as since from notifications_now
        where application_id = ${applicationId}`;
      return row;
    };
    expect(await birth(queue)).toEqual({ state: 'queued', reason: null, since: false });
    await set('disabled');
    expect(await birth(queue)).toEqual({ state: 'held', reason: 'endpoint_disabled', since: true });
    for (const why of ['gone', 'failing']) {
      await database.sql`
        update webhook_endpoints set disabled_reason = ${why}
        where partner_id = ${queue.partnerId} and environment = 'sandbox'`;
      expect(await birth(queue)).toMatchObject({ state: 'held', reason: `endpoint_${why}` });
    }
    const unregistered = { state: 'held', reason: 'webhook_not_registered' };
    expect(await birth({ ...queue, environment: 'live' })).toMatchObject(unregistered);
  });

  test('ends a workflow that is started all the same, and is not undone by it', async () => {
    const [notificationId = ''] = await store();
    const open = (generation: number) => openAttempt(database.db, { notificationId, generation });
    await holdAll();
    expect(await open(1)).toEqual({ kind: 'over', status: 'held', reason: 'endpoint_disabled' });
    await set('active');
    await release();
    expect(await open(1)).toMatchObject({ kind: 'over', status: 'superseded' });
    expect(await open(2)).toMatchObject({ kind: 'open' });
  });
});

describe('releasing', () => {
  test('goes batch by batch, in sequence, each under a new generation', async () => {
    const ids = await store(7);
    await holdAll();
    expect(await queuesToRelease(database.db)).toEqual([]);
    expect(await release()).toBe(0);
    await set('active');
    expect(await queuesToRelease(database.db)).toEqual([queue]);
    expect([await release(3), await release(3), await release(3)]).toEqual([3, 3, 1]);
    expect(await rows()).toEqual([{ state: 'queued', generation: 2, reason: null, since: false, count: 7 }]);
    const due = await database.sql`select notification_id as id from notifications_now order by due_at`;
    expect(due.map(({ id }) => id)).toEqual(ids);
    const distinct = await database.sql`select count(distinct due_at)::int as count from notifications_now`;
    expect(distinct).toEqual([{ count: 7 }]);
  });

  test('by four keepers at once releases everything once', async () => {
    await store(60);
    await holdAll();
    await set('active');
    const keep = async () => {
      let total = 0;
      for (let count = 10; count === 10; total += count) count = await release(10);
      return total;
    };
    const totals = await Promise.all([keep(), keep(), keep(), keep()]);
    expect(totals.reduce((sum, each) => sum + each, 0)).toBe(60);
    expect(await rows()).toMatchObject([{ state: 'queued', generation: 2, count: 60 }]);
  });

  test('comes before or after whoever disables or replaces the endpoint, and stops there', async () => {
    await store(20);
    await holdAll();
    await set('active');
    const other = await database.sql.reserve();
    await other`begin`;
    await other`update webhook_endpoints set state = 'disabled' where endpoint_id = ${endpointId}`;
    const waiting = release(10);
    const locked = () => database.sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    while ((await locked()).length === 0);
    await other`commit`;
    other.release();
    expect(await waiting).toBe(0);
    expect(await rows()).toMatchObject([{ state: 'held', count: 20 }]);
    // Another in its place releases them too.
    await addEndpoint(database, { ...queue, url: 'https://new.example/y', keyRing });
    expect(await release()).toBe(20);
  });

  test('finds what was held by a send that read the endpoint before it was enabled', async () => {
    const [notificationId = ''] = await store();
    const ref = { notificationId, generation: 1 };
    await set('disabled');
    expect(await openAttempt(database.db, ref)).toMatchObject({ kind: 'no_endpoint' });
    await set('active');
    expect(await queuesToRelease(database.db)).toEqual([]);
    await endNotification(database.db, ref, { state: 'held', reason: 'webhook_not_registered' });
    expect(await queuesToRelease(database.db)).toEqual([queue]);
    expect(await release()).toBe(1);
    expect(await rows()).toMatchObject([{ state: 'queued', generation: 2 }]);
  });
});

describe('expiring', () => {
  const day = (nth: number) =>
    setServiceClock(database, new Date(Date.parse('2026-11-01T06:00:00Z') + nth * 86_400_000).toISOString());

  test('comes after 30 days without an endpoint, counts as failed once, and tells operators', async () => {
    await day(0);
    const [first, , third] = await store(3);
    await holdAll();
    await day(29.99);
    expect(await expireHeld(database.db, { limit: 10 })).toEqual([]);
    await day(30);
    await set('active');
    expect(await expireHeld(database.db, { limit: 10 })).toEqual([]);
    await set('disabled');
    const details = { count: 3, first, last: third };
    const event = { kind: 'notifications_expired', ...queue, endpointId: null, details };
    expect(await expireHeld(database.db, { limit: 10 })).toEqual([event]);
    expect(await expireHeld(database.db, { limit: 10 })).toEqual([]);
    expect(await rows()).toMatchObject([{ state: 'expired', reason: 'held_too_long', count: 3 }]);
    expect(await counts()).toEqual([
      { type: 'credit_application.accepted', delivered: 0, failed: 3, reserved: 0 },
    ]);
  });

  test('moves the count when it is delivered by hand later, and counts no failure twice', async () => {
    await day(0);
    const [notificationId = ''] = await store();
    const open = (generation: number) => openedAttempt(database, { notificationId, generation }, [0]);
    await recordAttempt(database.db, await open(1), { outcome: FAILED, address: null });
    // Sent again by hand, and held on the way.
    await putInState(database, notificationId, 'queued', { generation: 2 });
    await holdAll();
    await day(31);
    await expireHeld(database.db, { limit: 10 });
    expect(await counts()).toMatchObject([{ delivered: 0, failed: 1 }]);
    await set('active');
    await putInState(database, notificationId, 'queued', { generation: 3 });
    await recordAttempt(database.db, await open(3), { outcome: DELIVERED, address: null });
    const sums =
      await database.sql`select sum(delivered)::int as delivered, sum(failed)::int as failed from monthly_counts`;
    expect(sums).toEqual([{ delivered: 1, failed: 0 }]);
  });

  test('is warned of seven days before, once a day, by one of many keepers', async () => {
    await day(0);
    await store(4);
    await holdAll();
    await day(22.9);
    expect(await warnOfExpiry(database.db)).toEqual([]);
    await day(23);
    const warned = await Promise.all([1, 2, 3, 4].map(() => warnOfExpiry(database.db)));
    expect(warned.flat()).toEqual([
      expect.objectContaining({
        kind: 'notifications_expiring',
        ...queue,
        details: { count: 4, from: '2026-12-01T06:00:00Z' },
      }),
    ]);
    await day(23.9);
    expect(await warnOfExpiry(database.db)).toEqual([]);
    await day(24.1);
    expect(await warnOfExpiry(database.db)).toHaveLength(1);
    const figures = { held: 4, expiring: 4, oldestHeldMs: 2_082_240_000 };
    expect(await healthFigures(database.db)).toMatchObject(figures);
  });
});
