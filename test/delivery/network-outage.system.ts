import { lowestNotificationId } from '../../db/notifications/notification';
import { listForPartner } from '../../db/notifications/partner';
import { deliveryWorkflowId } from '../../workflows/names';
import { until } from '../../testbed/until';
import { keepHistory } from '../support/histories';
import { outageSeconds, useOutside } from '../support/outside';
import { storeStatus } from '../../testbed/notifications';
import { connectAsOps, OTHER_DEPS, runWith } from '../ops/run';

/** The last one is only for the test of its own zone. */
const PARTNERS = Array.from({ length: 13 }, (_, nth) => ({
  partnerId: `P${300_000 + nth}`,
  host: `hooks.partner${nth}.test`,
  addresses: [`127.0.77.${nth + 1}`],
}));
const HEALTHY = PARTNERS.slice(0, 12);
const { outside, database } = useOutside({
  partners: PARTNERS,
  cidr: '127.0.77.0/24',
  timeouts: { dnsMs: 1_000, connectMs: 1_000, headersMs: 2_000 },
  environment: { TRY_EVERY_MS: '1000' },
});

const show = async (id: string) =>
  (await runWith({ ...OTHER_DEPS, connect: connectAsOps(database.url) }, ['notifications show', id])).out;
const eventFor = async ({ partnerId }: { partnerId: string }) =>
  (await storeStatus(database, { partnerId })).notificationId;
const ended = (ids: readonly string[]) =>
  database.sql`select end_state from notifications where notification_id = any(${[...ids]}) and end_state is not null`;
const attempts = (ids: readonly string[], outcome: string) =>
  database.sql`select * from delivery_attempts where notification_id = any(${[...ids]}) and outcome = ${outcome}`;
const gauge = () => outageSeconds(outside.worker);
/** Operator events are append-only: those of a test come after the last one before it. */
let eventsBefore = 0;
const kinds = async () =>
  (
    await database.sql`select kind from operator_events where event_id > ${eventsBefore} order by event_id`
  ).map(({ kind }) => String(kind));
beforeEach(async () => {
  const [last] = await database.sql`select coalesce(max(event_id), 0)::int as id from operator_events`;
  eventsBefore = Number(last?.['id']);
});

const spoil = (answer: NonNullable<typeof outside.spoiled>['answer']) =>
  void (outside.spoiled = { hosts: PARTNERS.map(({ host }) => host), answer });
const unspoil = () => void (outside.spoiled = null);
const CUTS = [
  ['no connection', () => outside.closeReceiver(), () => outside.openReceiver()],
  ['SERVFAIL to every name', () => spoil({ rcode: 2 }), unspoil],
  ['silence to every name', () => spoil('silence'), unspoil],
] as const;

test.each(CUTS)(
  'an outage of ours, %s, spends no step beyond the first, and ends by itself',
  async (what, cut, mend) => {
    await database.sql`delete from outages`;
    await cut();
    outside.closeIdle();
    const ids = await Promise.all(HEALTHY.map(eventFor));
    // Each is tried again and again, while the outage lasts.
    await until(
      async () => (await attempts(ids, 'ours')).length >= 4 * ids.length,
      'each is tried four times',
    );
    expect(await gauge()).toBeGreaterThan(0);
    expect(await kinds()).toEqual(['network_cut_off']);
    const rows = await database.sql`select step from deliveries where notification_id = any(${ids})`;
    expect(rows).toHaveLength(ids.length);
    expect(Math.max(...rows.map(({ step }) => Number(step)))).toBeLessThanOrEqual(1);
    // The first nine failures come before the rule is met.
    expect((await attempts(ids, 'failed')).length).toBeLessThanOrEqual(9);
    const failing = await database.sql`select 1 from webhook_endpoints where failures_since_success > 1`;
    expect(failing).toHaveLength(0);

    const shown = (await attempts(ids, 'ours')).at(-1)?.['notification_id'] as string;
    const waits = /Now: waits: our network cannot reach anybody since \d{4}-\d\d-\d\d \d\d:\d\d/;
    // Between two waits an attempt is under way.
    await until(async () => waits.test(await show(shown)), 'it says why it waits');
    const handle = outside.temporal.client.workflow.getHandle(deliveryWorkflowId(shown, 1));
    const { log } = await handle.query<{ log: string[] }>('progress');
    expect(log.join('\n')).toContain('does not count, the fault is ours');
    const partnerId = HEALTHY[ids.indexOf(shown)]?.partnerId ?? '';
    const span = {
      fromId: lowestNotificationId(0),
      beforeId: lowestNotificationId(Date.now() + 60_000),
      limit: 1,
      environment: 'sandbox',
    } as const;
    const page = await listForPartner(database.sql, { ...span, partnerId });
    expect(page.notifications[0]?.lastAttempt).toMatchObject({ outcome: 'unknown', failure: null });

    await mend();
    await until(async () => (await ended(ids)).length === ids.length, 'all are delivered');
    expect(new Set((await ended(ids)).map(({ end_state }) => end_state))).toEqual(new Set(['delivered']));
    await until(async () => (await kinds()).at(-1) === 'network_back', 'its end is noted');
    expect(await gauge()).toBe(0);
    await until(
      async () => (await database.sql`select 1 from outages where kind = 'network'`).length === 1,
      'the outage is kept for reports',
    );
    expect(await show(shown)).toContain('our own network reached nobody');
    if (what === 'no connection') await keepHistory('outage', handle);
  },
  200_000,
);

test("one partner's broken zone is its own failure", async () => {
  const [broken, healthy] = [PARTNERS[12], HEALTHY[0]];
  if (broken === undefined || healthy === undefined) throw new Error('no partners');
  outside.spoiled = { hosts: [broken.host], answer: { rcode: 2 } };
  const [bad, good] = [await eventFor(broken), await eventFor(healthy)];
  await until(async () => (await ended([good])).length === 1, 'the other one is delivered');
  await until(async () => (await attempts([bad], 'failed')).length === 1, 'it has failed');
  expect(await kinds()).toEqual([]);
  await until(
    async () =>
      (await database.sql`select 1 from deliveries where notification_id = ${bad} and step = 1`).length === 1,
    'the step is spent',
  );
});
