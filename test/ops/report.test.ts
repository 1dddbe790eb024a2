import { claimDue } from '../../db/notifications/claim';
import { endNotification, openAttempt, recordAttempt } from '../../db/notifications/attempt';
import { releaseHeld } from '../../db/notifications/hold';
import {
  newPartner,
  storeStatus,
  storeTest,
  advanceServiceClock,
  setServiceClock,
} from '../support/notifications';
import { DELIVERED, FAILED } from '../support/values';
import { useOps } from './run';

const ops = useOps();
const { database } = ops;
let partnerId = '';
beforeEach(async () => {
  ({ partnerId } = await newPartner(database, ops.webhookKeys ?? ''));
});
afterEach(() => setServiceClock(database, null));

const store = async () => (await storeStatus(database, { partnerId })).notificationId;
async function attempt(notificationId: string, outcome: typeof DELIVERED | typeof FAILED, generation = 1) {
  const opened = await openAttempt(database.db, { notificationId, generation });
  if (opened.kind !== 'open') throw new Error(opened.kind);
  const ref = { notificationId, attemptNumber: opened.attemptNumber };
  const retryInMs = outcome.kind === 'delivered' ? null : 5_000;
  await recordAttempt(database.db, ref, { outcome, address: null }, null, retryInMs);
}
const report = (...more: string[]) =>
  ops.json('notifications report --since 1h --partner', partnerId, ...more);
const eventOf = async (id: string) =>
  (await report()).events.find((one: { notification_id: string }) => one.notification_id === id);

test('says of each event when it was created and delivered, how late, and why; tests are not in it', async () => {
  const [prompt, failed, held] = [await store(), await store(), await store()];
  await storeTest(database, { partnerId });
  await attempt(prompt, DELIVERED);
  await attempt(failed, FAILED);
  await endNotification(
    database.db,
    { notificationId: held, generation: 1 },
    { state: 'held', reason: 'endpoint_gone' },
  );
  await ops.json('partners pause-deliveries', partnerId, '--environment', 'sandbox');
  await advanceServiceClock(database, 120);
  await ops.json('partners resume-deliveries', partnerId, '--environment', 'sandbox');
  await releaseHeld(database.db, { partnerId, environment: 'sandbox' }, { limit: 9 });
  await attempt(failed, DELIVERED);
  await attempt(held, DELIVERED, 2);
  const { found, delivered, events } = await report();
  expect({ found, delivered }).toEqual({ found: 3, delivered: 3 });
  expect(events.map((one: { notification_id: string }) => one.notification_id).toSorted()).toEqual(
    [prompt, failed, held].toSorted(),
  );
  expect(await eventOf(prompt)).toMatchObject({ reasons: [], why: '' });
  expect(await eventOf(failed)).toMatchObject({
    reasons: [
      { why: 'failed', what: '503' },
      { why: 'paused', what: 'tester', to: expect.any(String) },
    ],
    why: expect.stringMatching(/^your endpoint answered 503, .*; paused .* by tester$/),
  });
  expect((await eventOf(failed)).late_seconds).toBeGreaterThan(119);
  expect((await eventOf(held)).reasons).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ why: 'held', what: 'endpoint_gone', to: expect.any(String) }),
    ]),
  );
  expect((await report('--late', '1m')).events).toHaveLength(2);
  const listed = await ops.column(
    'notification_id',
    'notifications list --late 1m --state delivered --partner',
    partnerId,
  );
  expect(new Set(listed)).toEqual(new Set([failed, held]));
  const shown = await ops.json('notifications show', held);
  expect(shown.why_late.map(({ why }: { why: string }) => why)).toContain('held');
  expect(await ops.text('notifications show', failed)).toMatch(/\nWhy late: your endpoint answered 503/);
  const text = await ops.text('notifications report --since 1h --partner', partnerId);
  expect(text).toMatch(/^Events of P\d+ created from .*: 3, delivered 3, shown 3\.\n/);
  const csv = (await ops.text('notifications report --csv --since 1h --partner', partnerId)).split('\r\n');
  expect(csv).toHaveLength(4);
  expect(csv[0]).toMatch(/^event_id,notification_id,/);
  expect(csv.join('\n')).toContain('"your endpoint answered 503, ');
});

test('the span of a pause of one delivery stays after its end, by whom it was, and an outage of ours is named', async () => {
  const id = await store();
  await attempt(id, FAILED);
  await ops.json('notifications pause', id);
  expect((await eventOf(id)).reasons).toContainEqual(
    expect.objectContaining({ why: 'paused', what: 'tester', to: null }),
  );
  await database.sql`insert into outages (kind, began_at, ended_at)
    values ('workers', service_now() - interval '1 s', service_now() + interval '30 s')`;
  await advanceServiceClock(database, 60);
  await attempt(id, DELIVERED);
  const { reasons } = await eventOf(id);
  expect(reasons).toContainEqual(
    expect.objectContaining({ why: 'paused', what: 'tester', to: expect.any(String) }),
  );
  expect(reasons).toContainEqual(expect.objectContaining({ why: 'our_outage', what: 'workers' }));
});

test('a claim says of a late event what was in its way, for the page of its workflow', async () => {
  const id = await store();
  await database.sql`insert into outages (kind, began_at, ended_at)
    values ('temporal', service_now() - interval '1 s', service_now() + interval '50 s')`;
  const claim = () =>
    claimDue(database.sql, { limit: 100, slots: 100, leaseMs: 0, turn: null }).then(({ claimed }) =>
      claimed.find(({ notificationId }) => notificationId === id),
    );
  expect(await claim()).toEqual(expect.not.objectContaining({ interruptions: expect.anything() }));
  await advanceServiceClock(database, 60);
  const { interruptions = [] } = (await claim()) ?? {};
  expect(interruptions).toContainEqual(expect.objectContaining({ why: 'our_outage', what: 'temporal' }));
  // What was claimed is handed over even when nobody can say why it is late.
  await database.sql`alter table delivery_intervals rename to gone`;
  expect(await claim()).toEqual(expect.not.objectContaining({ interruptions: expect.anything() }));
  await database.sql`alter table gone rename to delivery_intervals`;
});

test('one that was sent again is late from that order on, and says when that was; the whole way decides on --late', async () => {
  const id = await store();
  await endNotification(
    database.db,
    { notificationId: id, generation: 1 },
    { state: 'failed', reason: 'exhausted' },
  );
  await advanceServiceClock(database, 600);
  await ops.json('notifications resend', id);
  await advanceServiceClock(database, 602);
  await attempt(id, DELIVERED, 2);
  const [one] = (await report('--late', '5m')).events;
  expect(one).toMatchObject({
    notification_id: id,
    sent_again_at: expect.any(String),
    why: expect.stringMatching(/; sent again at /),
  });
  expect(one.late_seconds).toBeGreaterThan(1);
  expect(one.late_seconds).toBeLessThan(60);
});

test('a span must be one, and a partner must be named', async () => {
  await ops.refuses(
    1,
    'The span is empty',
    'notifications report --since 1h --until 2h --partner',
    partnerId,
  );
  await ops.refuses(2, 'required option', 'notifications report --since 1h');
});

test('so long ago is reckoned by the clock of the database, which times the events, not by that of the operator', async () => {
  const id = await store();
  await advanceServiceClock(database, 7_200);
  const { events, since } = await report();
  expect([events, new Date(since).getTime() > Date.now()]).toEqual([[], true]);
  const older = await ops.json('notifications report --since 3h --until 1h --partner', partnerId);
  expect(older.events).toMatchObject([{ notification_id: id }]);
});
