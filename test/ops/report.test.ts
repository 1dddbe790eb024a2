import { reportEvents } from '../../db/audit/lateness';
import { endNotification } from '../../db/notifications/attempt';
import { releaseHeld } from '../../db/notifications/hold';
import { claimAll } from '../support/claims';
import {
  advanceServiceClock,
  newPartner,
  setServiceClock,
  storeStatus,
  storeTest,
} from '../../testbed/notifications';
import { attempt } from '../support/partner-events';
import { DELIVERED, FAILED } from '../../testbed/values';
import { useOps } from './run';

const ops = useOps();
const { database } = ops;
let partnerId = '';
beforeEach(async () => {
  ({ partnerId } = await newPartner(database, ops.webhookKeys ?? ''));
});
afterEach(() => setServiceClock(database, null));

const store = async () => (await storeStatus(database, { partnerId })).notificationId;
const delivers = (id: string) => attempt(database, id, DELIVERED);
const fails = (id: string) => attempt(database, id, FAILED, 5_000);
const ends = (notificationId: string, state: 'held' | 'failed', reason: string) =>
  endNotification(database.db, { notificationId, generation: 1 }, { state, reason });
const report = (...more: string[]) =>
  ops.json('notifications report --since 1h --partner', partnerId, ...more);
const reason = (why: string, what: string, to: unknown = expect.any(String)) =>
  expect.objectContaining({ why, what, to });
const eventOf = async (id: string) =>
  (await report()).events.find((one: { notification_id: string }) => one.notification_id === id);

test('says of each event when it was created and delivered, how late, and why; tests are not in it', async () => {
  const [prompt, failed, held] = [await store(), await store(), await store()];
  await storeTest(database, { partnerId });
  await delivers(prompt);
  await fails(failed);
  await ends(held, 'held', 'endpoint_gone');
  await ops.json('partners pause-deliveries', partnerId, '--environment', 'sandbox');
  await advanceServiceClock(database, 120);
  await ops.json('partners resume-deliveries', partnerId, '--environment', 'sandbox');
  await releaseHeld(database.db, { partnerId, environment: 'sandbox' }, { limit: 9 });
  await delivers(failed);
  await delivers(held);
  expect(await report()).toMatchObject({ found: 3, delivered: 3, events: { length: 3 } });
  expect(await eventOf(prompt)).toMatchObject({ reasons: [], why: '' });
  expect(await eventOf(failed)).toMatchObject({
    reasons: [reason('failed', '503'), reason('paused', 'tester')],
    why: expect.stringMatching(/^your endpoint answered 503, .*; paused .* by tester$/),
  });
  expect((await eventOf(failed)).late_seconds).toBeGreaterThan(119);
  expect((await eventOf(held)).reasons).toContainEqual(reason('held', 'endpoint_gone'));
  expect((await report('--late', '1m')).events).toHaveLength(2);
  const late = 'notifications list --late 1m --state delivered --partner';
  expect(new Set(await ops.column('notification_id', late, partnerId))).toEqual(new Set([failed, held]));
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
  await fails(id);
  await ops.json('notifications pause', id);
  expect((await eventOf(id)).reasons).toContainEqual(reason('paused', 'tester', null));
  await database.sql`insert into outages (kind, began_at, ended_at)
    values ('workers', service_now() - interval '1 s', service_now() + interval '30 s')`;
  await advanceServiceClock(database, 60);
  await ops.json('notifications resume', id);
  await delivers(id);
  const { reasons } = await eventOf(id);
  expect(reasons).toContainEqual(reason('paused', 'tester'));
  expect(reasons).toContainEqual(reason('our_outage', 'workers'));
});

test('a claim says of a late event what was in its way, for the page of its workflow', async () => {
  const id = await store();
  await database.sql`insert into outages (kind, began_at, ended_at)
    values ('temporal', service_now() - interval '1 s', service_now() + interval '50 s')`;
  const claim = () =>
    claimAll(database.sql, { limit: 100, slots: 100, leaseMs: 0 }).then(({ claimed }) =>
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
  await ends(id, 'failed', 'exhausted');
  await advanceServiceClock(database, 600);
  await ops.json('notifications resend', id);
  await advanceServiceClock(database, 602);
  await delivers(id);
  const [one] = (await report('--late', '5m')).events;
  expect(one).toMatchObject({
    notification_id: id,
    sent_again_at: expect.any(String),
    why: expect.stringMatching(/; sent again at /),
  });
  expect(one.late_seconds).toBeGreaterThan(1);
  expect(one.late_seconds).toBeLessThan(60);
});

test('so long ago is reckoned by the clock of the database, which times the events, not by that of the operator', async () => {
  const id = await store();
  await advanceServiceClock(database, 7_200);
  const { events, since } = await report();
  expect([events, new Date(since).getTime() > Date.now()]).toEqual([[], true]);
  const older = await ops.json('notifications report --since 3h --until 1h --partner', partnerId);
  expect(older.events).toMatchObject([{ notification_id: id }]);
});

test('of past holds it reads those of its events alone', async () => {
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  const span = { since: at(-60_000), until: at(60_000) };
  await database.sql`
    insert into delivery_intervals
    select 'ntf_' || lpad(i::text, 26, '0'), 'held', 'endpoint_gone', now(), now() from generate_series(1, 5000) i`;
  await database.sql`analyze delivery_intervals`;
  await store();
  const read = await database.db.transaction(async (tx) => {
    expect(await reportEvents(tx, { partnerId, ...span, limit: 10 })).toHaveLength(1);
    const [row] = await tx.execute<{ read: number }>(
      `select seq_tup_read::int as read from pg_stat_xact_user_tables where relname = 'delivery_intervals'`,
    );
    return row?.read;
  });
  expect(read).toBe(0);
});
