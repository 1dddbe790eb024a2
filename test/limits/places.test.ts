import { until } from '../../testbed/until';
import { testTemporal } from '../support/temporal';
import { openScene, type Scene } from './scene';

const temporal = testTemporal();
let scene: Scene;

beforeAll(async () => {
  scene = await openScene(temporal, ['Pacific/Auckland', 'Europe/London']);
  const { sql } = scene.database;
  // For every session that does not say otherwise.
  await sql`do $$ begin
    execute format('alter database %I set timezone = ''America/New_York''', current_database()); end $$`;
  await scene.startWorker();
}, 120_000);
afterAll(() => scene?.close());
beforeEach(() => scene.begin(null));

const NOVEMBER = '2026-11-10T12:00:00Z';

async function delivered(count: number, clock = NOVEMBER): Promise<void> {
  await scene.begin(clock);
  await scene.database.sql`
    insert into monthly_counts (partner_id, environment, month, event_type, delivered)
    values ('P100001', 'sandbox', service_month(), 'credit_application.test', ${count})`;
}
/** What calls came to; whether an accepted one is told `delivered` or `queued` is a matter of ten seconds. */
const statuses = async (calls: number, keys?: readonly string[]) =>
  (await scene.fire(calls, keys)).map(({ status }) => (status < 300 ? 'accepted' : `${status}`)).toSorted();
const november = (counts: { delivered: number; failed: number }) => [
  { month: '2026-11-01', reserved: 0, ...counts },
];

test('with 99 delivered, of two calls at once exactly one is accepted', async () => {
  for (let times = 0; times < 5; times += 1) {
    await delivered(99);
    expect(await statuses(2)).toEqual(['429', 'accepted']);
    await scene.quiet();
    expect(await scene.counts()).toEqual(november({ delivered: 100, failed: 0 }));
    expect(scene.taken.size).toBe(1);
  }
});

test('with 99 delivered and one under way the next is 429, until that one fails and frees its place', async () => {
  await delivered(99);
  let decide: (status: number) => void = () => {};
  const decision = new Promise<number>((resolve) => (decide = resolve));
  scene.answer(() => decision);
  const pending = scene.fire(1);
  await until(() => scene.receiver.received.length === 1, 'it is under way');
  const [refused] = await scene.fire(1);
  expect(refused).toMatchObject({
    status: 429,
    code: 'TEST_NOTIFICATION_LIMIT_REACHED',
    retryAfter: 60,
    body: { error: { details: { limit: 100, delivered: 99, in_progress: 1 } } },
  });
  decide(500);
  expect((await pending)[0]?.status).toBe(202);
  await scene.quiet();
  scene.answer(() => 200);
  expect(await statuses(1)).toEqual(['accepted']);
  expect(await scene.counts()).toEqual(november({ delivered: 100, failed: 1 }));
});

const ROW_57 = [
  ['2026-03-31T23:30:00Z', '2026-03-01', 'London is an hour ahead, in April'],
  ['2026-03-29T01:00:00Z', '2026-03-01', 'London changes to summer time'],
  ['2026-10-25T01:30:00Z', '2026-10-01', 'London has this hour twice'],
  ['2026-11-01T02:00:00Z', '2026-11-01', 'New York is still in October, on the day it leaves summer time'],
  ['2026-11-30T11:30:00Z', '2026-11-01', 'Auckland is in December'],
  ['2026-12-31T23:30:00Z', '2026-12-01', 'Auckland is in the next year'],
  ['2027-01-01T00:00:00Z', '2027-01-01', 'New York is in the last one'],
] as const;
test.each(ROW_57)('at %s the month is that of %s, wherever the servers are (%s)', async (clock, month) => {
  await delivered(98, clock);
  expect(await statuses(4)).toEqual(['429', '429', 'accepted', 'accepted']);
  await scene.quiet();
  expect(await scene.counts()).toEqual([{ month, delivered: 100, failed: 0, reserved: 0 }]);
  const refused = await scene.fire(2);
  const [year, number] = month.split('-').map(Number);
  const next = new Date(Date.UTC(year ?? 0, number ?? 0, 1)).toISOString();
  for (const { body, retryAfter } of refused) {
    expect(body.error.details.month_ends_at).toBe(next);
    // By the clock of the database: the real one is months away. It has run on for as long as the test took.
    const mostSeconds = (Date.parse(next) - Date.parse(clock)) / 1_000;
    expect(retryAfter).toBeLessThanOrEqual(mostSeconds);
    expect(retryAfter).toBeGreaterThan(mostSeconds - 300);
  }
  for (const zone of ['UTC', 'Pacific/Auckland', 'America/New_York', 'Europe/London', 'Asia/Kathmandu']) {
    const keys = await scene.database.sql.begin(async (sql) => {
      await sql`select set_config('TimeZone', ${zone}, true)`;
      return sql`select service_month()::text as month`;
    });
    expect(keys[0]?.['month']).toBe(month);
  }
});

test('401, 409 and 429 in a loop move no count and store nothing', async () => {
  await delivered(100);
  const before = await scene.counts();
  for (let round = 0; round < 3; round += 1)
    for (const [status, keys] of [
      ['401', ['sk_test_00000000000000000000000000000000']],
      ['409', [scene.liveKey]],
      ['429', undefined],
    ] as const)
      expect(new Set(await statuses(40, keys))).toEqual(new Set([status]));
  expect(await scene.counts()).toEqual(before);
  const [rows] = await scene.database.sql`
    select (select count(*) from notifications_now)::int as notifications,
      (select count(*) from monthly_counts)::int as counts`;
  expect(rows).toEqual({ notifications: 0, counts: 1 });
});
